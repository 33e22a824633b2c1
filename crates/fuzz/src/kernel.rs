//! What the kernel says to an export of an array.

use raidlab_targets::messages::{Decision, Order, Served, Span, decide, parse, room};

/// Bytes of the file that is served: not a multiple of the longest request.
const SIZE: u64 = (5 << 20) + (64 << 10);
/// The longest request.
const LONGEST: u64 = 1 << 20;
/// Bytes of a message before the payload of a write.
const HEAD: usize = 80;
/// The errors that are answered: those that an unmodified kernel knows what to do with.
const ERRORS: [i32; 8] = [1, 2, 21, 22, 28, 38, 71, 95];

/// Messages of FUSE. The first byte is the array's block. Each message begins with a byte for its length, in units of
/// 8 bytes, of which the highest bit says that what is under way ends before, and one for sectors of payload. What the
/// array is asked for lies in the file, and what has a payload fits into its buffer; what writes parts of a block never
/// meets another write that is under way.
pub fn fuse(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let served = Served { size: SIZE, block: 512 << (first % 8), open_flags: 2 };
    let (mut order, mut spans) = (Order::default(), Vec::new());
    let (mut under_way, mut started) = (Vec::new(), 0);
    while let [length, sectors, more @ ..] = rest {
        let len = usize::from(length & 0x7f) * 8;
        let (message, after) = more.split_at(len.min(more.len()));
        rest = after;
        if length & 0x80 != 0 {
            under_way.drain(..).for_each(|slot| order.done(slot));
        }
        let change = judged(message, usize::from(*sectors) * 512, &served);
        if let Some(change) = change {
            order.add(spans.len() as u32, change);
            spans.push(change);
        }
        started += start(&mut order, &spans, &mut under_way);
    }
    while !under_way.is_empty() {
        under_way.drain(..).for_each(|slot| order.done(slot));
        started += start(&mut order, &spans, &mut under_way);
    }
    assert_eq!((order.take(), started), (None, spans.len()), "nothing waits for ever");
}

/// What a message has the array do, if anything: the span of a change.
fn judged(message: &[u8], payload: usize, served: &Served) -> Option<Option<Span>> {
    let read = parse(message);
    assert_eq!(read.is_some(), message.len() >= 40);
    assert_eq!(parse(&message[..message.len().min(HEAD)]).is_some(), read.is_some());
    let decision = decide(read?.ask, served, payload);
    let (offset, len) = match decision {
        Decision::Nothing => return None,
        Decision::Answer(body) => {
            assert!(body.len() <= 4096);
            return None;
        }
        Decision::Refuse(error) => {
            assert!(ERRORS.contains(&error), "{error}");
            return None;
        }
        Decision::Sync => return Some(None),
        Decision::Read(offset, len) => (offset, len),
        Decision::Write(offset, len, _) => {
            assert!(len <= LONGEST && len as usize <= payload);
            (offset, len)
        }
        Decision::Zero(offset, len) => {
            assert!(offset.is_multiple_of(served.block) && len.is_multiple_of(served.block));
            (offset, len)
        }
    };
    assert!(len > 0 && offset + len <= served.size, "{decision:?}");
    let span = Span { offset, len, block: served.block };
    assert!(span.start() <= offset && offset + len <= span.end() && span.end() <= served.size);
    let takes_buffer = !matches!(decision, Decision::Zero(..));
    assert!(!takes_buffer || span.whole() <= room(served.block), "{span:?}");
    Some((!matches!(decision, Decision::Read(..))).then_some(span))
}

/// Starts all that may go to the array now; how many.
fn start(order: &mut Order, spans: &[Option<Span>], under_way: &mut Vec<u32>) -> usize {
    let before = under_way.len();
    while let Some(slot) = order.take() {
        for other in under_way.iter().filter_map(|other| spans[*other as usize]) {
            if let Some(span) =
                spans[slot as usize].filter(|one| !(one.is_whole() && other.is_whole()))
            {
                let meet = span.start() < other.end() && other.start() < span.end();
                assert!(!meet, "{span:?} while {other:?} is under way");
            }
        }
        under_way.push(slot);
    }
    under_way.len() - before
}
