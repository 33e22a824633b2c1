//! The document as a spreadsheet (OpenDocument 1.3): what raw rounds come to are formulas without stored values, so
//! whoever changes a round sees medians, means and percentages move.
//!
//! The parts are written here, as they are few; no library that writes them has charts either, and each is larger than
//! all of this. Pictures are the figures of [`crate::figure`].

mod sheets;
mod xml;

use std::io::{Cursor, Write};

use raidlab_results::Results;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::view::View;
use crate::{Exporter, ReportError, ReportErrorKind, figure};

/// What a spreadsheet's first entry says, which must not be compressed.
const MIME: &str = "application/vnd.oasis.opendocument.spreadsheet";
/// The figures that a spreadsheet shows, where the document has their data.
const FIGURES: [&str; 4] = ["choice", "heat", "percent", "bars"];
/// Panels of each.
const PANELS: usize = 6;

/// A spreadsheet: sheets of results by formulas, of mean percentages, of raw rounds, of what was run, and of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ods;

/// A picture in the file.
struct Picture {
    path: String,
    svg: String,
}

impl Exporter for Ods {
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError> {
        let views = documents.iter().map(View::new).collect::<Result<Vec<_>, _>>()?;
        let mut pictures = Vec::new();
        for (at, view) in views.iter().enumerate() {
            let figures = FIGURES.iter().filter_map(|name| figure::of_view(view, name, PANELS));
            pictures.extend(figures.map(|figure| Picture {
                path: format!("Pictures/{at}-{}.svg", figure.name),
                svg: figure.svg(),
            }));
        }
        let content = sheets::content(&views, &pictures);
        archive(&content, &pictures).map_err(|error| {
            ReportError::new(ReportErrorKind::Archive, format!("no spreadsheet: {error}"))
        })
    }
}

fn archive(content: &str, pictures: &[Picture]) -> Result<Vec<u8>, ZipError> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let deflated = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    zip.start_file("mimetype", stored)?;
    zip.write_all(MIME.as_bytes())?;
    let manifest = manifest(pictures);
    let parts = [("META-INF/manifest.xml", manifest.as_str()), ("content.xml", content)];
    let pictures = pictures.iter().map(|one| (one.path.as_str(), one.svg.as_str()));
    for (path, text) in parts.into_iter().chain(pictures) {
        zip.start_file(path, deflated)?;
        zip.write_all(text.as_bytes())?;
    }
    Ok(zip.finish()?.into_inner())
}

fn manifest(pictures: &[Picture]) -> String {
    let entry = |path: &str, kind: &str| {
        let (path, kind) = (xml::escaped(path), xml::escaped(kind));
        format!(
            "<manifest:file-entry manifest:full-path=\"{path}\" manifest:media-type=\"{kind}\"/>\n"
        )
    };
    let pictures: String = pictures.iter().map(|one| entry(&one.path, "image/svg+xml")).collect();
    format!(
        "{}<manifest:manifest xmlns:manifest=\"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0\" \
         manifest:version=\"1.3\">\n{}{}{pictures}</manifest:manifest>\n",
        xml::HEAD,
        entry("/", MIME),
        entry("content.xml", "text/xml")
    )
}
