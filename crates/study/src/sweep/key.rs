//! Keys of a study file as a sweep names them: `seed`, `host.kernel`, `layouts.chunk`, `drives[nas].model`.

use std::borrow::Cow;
use std::ops::Range;

use raidlab_core::suggest::did_you_mean;
use raidlab_toml_file::{DeArray, DeTable, DeValue, Spanned};

/// A key with what leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    /// Of a list, which one: its number from 0, or its `name`.
    which: Option<String>,
}

impl Key {
    /// Reads a key; the error says what would be right.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a key; write for instance `seed`, `host.kernel`, `layouts.chunk` for all layouts, \
                 `layouts[0].chunk` for the first, or `drives[nas].model` for the one with this name"
            )
        };
        let (mut steps, mut rest) = (Vec::new(), text);
        loop {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let (which, behind) = match behind.strip_prefix('[') {
                Some(inside) => {
                    let (which, behind) = inside.split_once(']').ok_or_else(wrong)?;
                    (Some(which.trim().to_owned()).filter(|which| !which.is_empty()), behind)
                }
                None => (None, behind),
            };
            let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
            let is_empty = rest[end..].starts_with('[') && which.is_none();
            if name.is_empty() || !name.chars().all(is_name) || is_empty {
                return Err(wrong());
            }
            steps.push(Step { name: name.to_owned(), which });
            match behind.strip_prefix('.') {
                Some(more) => rest = more,
                None if behind.is_empty() => break,
                None => return Err(wrong()),
            }
        }
        if steps[0].name == "sweep" {
            return Err("a sweep cannot change what it sweeps over; name another key".to_owned());
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is one of a drive's model, the file of which has a say in what comes out.
    pub(crate) fn is_model(&self) -> bool {
        self.steps.first().is_some_and(|step| step.name == "drives")
    }

    /// Which items of a list of tables it means, and of which list; `None` where it leads into none.
    pub(crate) fn items(&self, document: &DeTable<'_>) -> Option<(&str, Vec<usize>)> {
        let (step, rest) = self.steps.split_first()?;
        match document.get(step.name.as_str())?.get_ref() {
            DeValue::Array(items) => Some((&step.name, chosen(items, step, rest).ok()?)),
            _ => None,
        }
    }

    /// Puts a value there.
    ///
    /// # Errors
    /// In words, when nothing is there that could have it.
    pub(crate) fn set<'a>(
        &self,
        document: &mut DeTable<'a>,
        value: &Spanned<DeValue<'a>>,
    ) -> Result<(), String> {
        set(document, &self.steps, value)
    }
}

fn named(name: &str, span: Range<usize>) -> Spanned<Cow<'static, str>> {
    Spanned::new(span, Cow::Owned(name.to_owned()))
}

fn set<'a>(
    table: &mut DeTable<'a>,
    steps: &[Step],
    value: &Spanned<DeValue<'a>>,
) -> Result<(), String> {
    let [step, rest @ ..] = steps else { return Ok(()) };
    let name = step.name.as_str();
    if rest.is_empty() && step.which.is_none() {
        table.insert(named(name, value.span()), value.clone());
        return Ok(());
    }
    let Some(there) = table.get_mut(name) else {
        if step.which.is_some() {
            return Err(format!("the study has no list `{name}`"));
        }
        let mut made = DeTable::new();
        set(&mut made, rest, value)?;
        let made = Spanned::new(value.span(), DeValue::Table(made));
        table.insert(named(name, value.span()), made);
        return Ok(());
    };
    match there.get_mut() {
        DeValue::Table(inner) if step.which.is_none() => set(inner, rest, value),
        DeValue::Array(items) => {
            for at in chosen(items, step, rest)? {
                let Some(item) = items.get_mut(at) else { continue };
                match (item.get_mut(), rest) {
                    (_, []) => *item = value.clone(),
                    (DeValue::Table(inner), rest) => set(inner, rest, value)?,
                    _ => return Err(format!("`{name}` is a list of values without keys")),
                }
            }
            Ok(())
        }
        _ if step.which.is_some() => Err(format!("`{name}` is not a list")),
        _ => Err(format!("`{name}` is a value, which has no keys")),
    }
}

/// The value of a key of an item, which has one if it is a table.
fn of<'i, 'a>(item: &'i Spanned<DeValue<'a>>, key: &str) -> Option<&'i DeValue<'a>> {
    match item.get_ref() {
        DeValue::Table(table) => table.get(key).map(Spanned::get_ref),
        _ => None,
    }
}

/// Which items of a list are meant. Without a number or name: those in which the key stands already, or
/// all where it stands in none, so that it can be swept over of what differs in what it takes.
fn chosen(items: &DeArray<'_>, step: &Step, rest: &[Step]) -> Result<Vec<usize>, String> {
    let Some(which) = &step.which else {
        let has = |at: &usize| rest.first().is_some_and(|key| of(&items[*at], &key.name).is_some());
        let having: Vec<usize> = (0..items.len()).filter(has).collect();
        return Ok(if having.is_empty() { (0..items.len()).collect() } else { having });
    };
    let name = step.name.as_str();
    if let Ok(number) = which.parse::<usize>() {
        let count = items.len();
        let found = (number < count).then(|| vec![number]);
        return found
            .ok_or_else(|| format!("there is no `{name}[{number}]`: there are {count}, from 0"));
    }
    let names: Vec<Option<&str>> =
        items.iter().map(|item| of(item, "name").and_then(DeValue::as_str)).collect();
    match names.iter().position(|one| *one == Some(which)) {
        Some(at) => Ok(vec![at]),
        None => {
            let known: Vec<&str> = names.iter().flatten().copied().collect();
            let hint = did_you_mean(which, &known);
            let known = match known.is_empty() {
                true => "none has a `name`, so give its number from 0".to_owned(),
                false => format!("those with a `name`: {}", known.join(", ")),
            };
            Err(format!("`{name}` has none called `{which}`{hint}; {known}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;

    fn changed(text: &str, key: &str, value: &str) -> Result<String, String> {
        let mut document = DeTable::parse(text).expect("TOML");
        let value = DeValue::parse(value).expect("TOML");
        Key::parse(key)?.set(document.get_mut(), &value)?;
        Ok(Value::table(document.get_ref()).toml())
    }

    #[test]
    fn keys_lead_to_tables_and_lists() {
        let text = "a = 1\nb = [{ name = \"x\", c = 1 }, { name = \"y\" }]\nd = [1, 2]\n";
        let is = |key: &str, value: &str, all: &str| {
            assert_eq!(changed(text, key, value).as_deref(), Ok(all), "{key}");
        };
        let (b, d) = ("b = [{ c = 1, name = \"x\" }, { name = \"y\" }]", "d = [1, 2]");
        is("a", "7", &format!("{{ a = 7, {b}, {d} }}"));
        is(
            "b.c",
            "7",
            &format!("{{ a = 1, b = [{{ c = 7, name = \"x\" }}, {{ name = \"y\" }}], {d} }}"),
        );
        is(
            "b.e",
            "7",
            &format!(
                "{{ a = 1, b = [{{ c = 1, e = 7, name = \"x\" }}, {{ e = 7, name = \"y\" }}], {d} }}"
            ),
        );
        is(
            "b[y].c",
            "7",
            &format!(
                "{{ a = 1, b = [{{ c = 1, name = \"x\" }}, {{ c = 7, name = \"y\" }}], {d} }}"
            ),
        );
        is("b[1]", "7", &format!("{{ a = 1, b = [{{ c = 1, name = \"x\" }}, 7], {d} }}"));
        is("d[0]", "7", &format!("{{ a = 1, {b}, d = [7, 2] }}"));
        is("h.k", "7", &format!("{{ a = 1, {b}, {d}, h = {{ k = 7 }} }}"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let text = "a = 1\nb = [{ name = \"xyz\" }]\nd = [1]\n";
        let why = |key: &str| changed(text, key, "7").expect_err(key);
        assert!(why("b[xyy].c").contains("did you mean `xyz`"), "{}", why("b[xyy].c"));
        assert!(why("b[3].c").contains("there are 1"));
        assert!(why("n[0].c").contains("no list `n`"));
        assert!(why("a.b").contains("a value, which has no keys"));
        assert!(why("a[0]").contains("not a list"));
        assert!(why("d.x").contains("without keys"));
        for bad in ["", ".", "a.", "a[", "a[]", "a]b", "a[0]b", "a b"] {
            assert!(why(bad).contains("is not a key"), "{bad}");
        }
        assert!(why("sweep.axes").contains("cannot change what it sweeps"));
    }
}
