//! What processes share: barriers and queues of tickets, as plain values.
//!
//! A target with one thread uses it as it is; one with a thread for each process puts it behind a lock.

use std::collections::VecDeque;

/// A process of the plan, by its index.
pub type ProcessIndex = usize;

/// Barriers and queues of a run.
#[derive(Clone, Debug)]
pub struct Synchroniser {
    barriers: Vec<Barrier>,
    queues: Vec<Queue>,
}

#[derive(Clone, Debug)]
struct Barrier {
    needed: u32,
    waiting: Vec<ProcessIndex>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    /// Tickets and how often each is there.
    tickets: VecDeque<(i64, u64)>,
    waiting: VecDeque<ProcessIndex>,
}

impl Synchroniser {
    /// For a plan with these barriers and queues.
    pub fn new(barriers: &[u32], queues: u16) -> Self {
        let barriers = barriers.iter().map(|&needed| Barrier { needed, waiting: Vec::new() });
        Self { barriers: barriers.collect(), queues: vec![Queue::default(); usize::from(queues)] }
    }

    /// A process comes to a barrier. When it is the last, those that waited go on, and so does it:
    /// gives them without itself. `None`: it waits. A barrier that is not there lets everybody pass.
    pub fn arrive(&mut self, process: ProcessIndex, barrier: u16) -> Option<Vec<ProcessIndex>> {
        let Some(barrier) = self.barriers.get_mut(usize::from(barrier)) else {
            return Some(Vec::new());
        };
        if barrier.waiting.len() as u32 + 1 < barrier.needed {
            barrier.waiting.push(process);
            return None;
        }
        Some(std::mem::take(&mut barrier.waiting))
    }

    /// Tickets go into a queue; gives the processes that waited for one, each with its ticket.
    pub fn put(&mut self, queue: u16, ticket: i64, times: u64) -> Vec<(ProcessIndex, i64)> {
        let Some(queue) = self.queues.get_mut(usize::from(queue)) else { return Vec::new() };
        let served = (queue.waiting.len() as u64).min(times);
        let given = queue.waiting.drain(..served as usize).map(|process| (process, ticket));
        let given = given.collect();
        if times > served {
            queue.tickets.push_back((ticket, times - served));
        }
        given
    }

    /// A process takes a ticket. `None`: it waits for one.
    pub fn take(&mut self, process: ProcessIndex, queue: u16) -> Option<i64> {
        let taken = self.take_if_there(queue);
        if taken.is_none() {
            self.queues.get_mut(usize::from(queue))?.waiting.push_back(process);
        }
        taken
    }

    /// The same for whoever does not wait.
    pub fn take_if_there(&mut self, queue: u16) -> Option<i64> {
        let tickets = &mut self.queues.get_mut(usize::from(queue))?.tickets;
        let (ticket, times) = tickets.front_mut()?;
        let ticket = *ticket;
        *times -= 1;
        if *times == 0 {
            tickets.pop_front();
        }
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_opens_with_the_last_and_can_be_used_again() {
        let mut synchroniser = Synchroniser::new(&[3], 0);
        for _ in 0..2 {
            assert_eq!(synchroniser.arrive(0, 0), None);
            assert_eq!(synchroniser.arrive(2, 0), None);
            assert_eq!(synchroniser.arrive(1, 0), Some(vec![0, 2]));
        }
        assert_eq!(synchroniser.arrive(1, 9), Some(vec![]));
    }

    #[test]
    fn tickets_come_out_in_order_and_wake_who_waited_longest() {
        let mut synchroniser = Synchroniser::new(&[], 1);
        assert_eq!(synchroniser.take(4, 0), None);
        assert_eq!(synchroniser.take(5, 0), None);
        assert_eq!(synchroniser.put(0, 7, 1), [(4, 7)]);
        assert_eq!(synchroniser.put(0, 1, 3), [(5, 1)]);
        assert_eq!(synchroniser.put(0, -2, 1), []);
        assert_eq!(synchroniser.take_if_there(0), Some(1));
        let taken: Vec<_> = (0..3).map(|process| synchroniser.take(process, 0)).collect();
        assert_eq!(taken, [Some(1), Some(-2), None]);
        // Who only looked does not wait.
        assert_eq!([0, 9].map(|queue| synchroniser.take_if_there(queue)), [None, None]);
        assert_eq!(synchroniser.put(0, 3, 2), [(2, 3)]);
    }
}
