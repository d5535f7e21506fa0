//! The tokenizer against html5ever's, which is the standard's to the letter: same tags, attributes and text.

use fonds_pages::tokens::{TextKind, Token, Tokenizer, decode_text};
use html5ever::tokenizer::Token as OracleToken;
use html5ever::tokenizer::states::{Plaintext, RawKind, Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{BufferQueue, TagKind, TokenSink, TokenSinkResult, Tokenizer as Oracle, TokenizerOpts};
use std::cell::RefCell;

#[derive(Debug, PartialEq, Clone)]
enum Seen {
    Start(String, Vec<(String, String)>, bool),
    End(String),
    Text(String),
}

#[derive(Default)]
struct Sink {
    seen: RefCell<Vec<Seen>>,
}

fn push_text(seen: &mut Vec<Seen>, text: &str) {
    // NUL is dropped or replaced depending on the tree builder's state; it means nothing here.
    let text = text.replace(['\0', '\u{FFFD}'], "");
    if text.is_empty() {
        return;
    }
    match seen.last_mut() {
        Some(Seen::Text(before)) => before.push_str(&text),
        _ => seen.push(Seen::Text(text)),
    }
}

fn clean(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").replace(['\0', '\u{FFFD}'], "")
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: OracleToken, _line: u64) -> TokenSinkResult<()> {
        let mut seen = self.seen.borrow_mut();
        match token {
            OracleToken::TagToken(tag) => {
                let name = clean(&tag.name);
                if tag.kind == TagKind::EndTag {
                    seen.push(Seen::End(name));
                    return TokenSinkResult::Continue;
                }
                let attrs = tag.attrs.iter().map(|a| (clean(&a.name.local), clean(&a.value))).collect();
                seen.push(Seen::Start(name.clone(), attrs, tag.self_closing));
                raw_kind(&name)
            }
            OracleToken::CharacterTokens(text) => {
                push_text(&mut seen, &text);
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

fn raw_kind(name: &str) -> TokenSinkResult<()> {
    let kind: RawKind = match name {
        "title" | "textarea" => Rcdata,
        "style" | "xmp" | "iframe" | "noembed" => Rawtext,
        "script" => ScriptData,
        "plaintext" => {
            let _ = Plaintext;
            return TokenSinkResult::Plaintext;
        }
        _ => return TokenSinkResult::Continue,
    };
    TokenSinkResult::RawData(kind)
}

fn oracle(html: &str) -> Vec<Seen> {
    let input = BufferQueue::default();
    input.push_back(html.into());
    let tokenizer = Oracle::new(Sink::default(), TokenizerOpts { discard_bom: false, ..TokenizerOpts::default() });
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.seen.into_inner()
}

fn ours(html: &str) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut tokens = Tokenizer::html(html);
    while let Some(token) = tokens.next() {
        match token {
            Token::Start(tag) => {
                let attrs = tokens.attrs().map(|a| (clean(&a.name.to_ascii_lowercase()), clean(&a.value()))).collect();
                seen.push(Seen::Start(clean(&tag.raw.to_ascii_lowercase()), attrs, tag.self_closing));
            }
            Token::End(tag) => seen.push(Seen::End(clean(&tag.raw.to_ascii_lowercase()))),
            Token::Text(text, kind) => {
                let text = if kind.has_entities() { decode_text(text) } else { text.into() };
                assert_ne!(kind, TextKind::Cdata);
                push_text(&mut seen, &clean(&text));
            }
            _ => {}
        }
    }
    seen
}

#[track_caller]
fn check(html: &str) {
    assert_eq!(ours(html), oracle(html), "{html:?}");
}

#[test]
fn the_odd_corners_are_the_standards() {
    for html in [
        "<a href=x>y</a>",
        "<a href = 'x' b=\"y\" c d=e/ f=g/>z",
        "<a/b/c=d><a =x><a x= ><a x=''y=1><a a=1 A=2>",
        "<A HREF=X></A >",
        "<a",
        "<a b",
        "<a b=",
        "<a b='c",
        "</a",
        "<",
        "</",
        "</>",
        "</ a>",
        "<3",
        "a < b",
        "<>",
        "<!-- a --><!--><!---><!-- a --!>b<!-- a - -- b -->c<!-->d",
        "<!doctype html>x",
        "<!DOCTYPE a [ <b> ]>c",
        "<?php a > b",
        "<![CDATA[a]]>b",
        "<!--a--",
        "<!--a",
        "<!-",
        "<!a>b",
        "<script>a<b</script>c",
        "<script><!--<script>a</script>b--></script>c",
        "<script><!--a</script>b",
        "<script><!-->a</script>b",
        "<script><!--<script></script>a",
        "<script>a</scriptx>b</script >c",
        "<script></SCRIPT/>a",
        "<script><!--<scriptx></script>b",
        "<script><!-- <script> --> </script> b",
        "<script><!--</script",
        "<script><!--<script></script></script>x",
        "<style>a</title></style>b",
        "<title>a&amp;b<c></title>d",
        "<textarea></textareA>a",
        "<xmp>&amp;</xmp>",
        "<iframe><a></iframe>",
        "<plaintext>a</plaintext><b>",
        "<title>a",
        "<title></titl",
        "&amp;&lt&notin;&notit;&not;&#65;&#x41;&#X41&#0;&#128;&#x110000;&#xD800;&#;&#x;&;&a;&ampx;&Aacute",
        "<a b='&amp;&lt&notin;&notit;&not=&copy=1&copy1&copy;&#65'>",
        "<a b=&amp c=&lt>",
        "<a\tb\nc\x0Cd\re>",
        "<a\u{A0}b>",
        "<ä>",
        "<aä b>",
        "</aä>",
        "a\r\nb\rc",
        "<p/ >",
        "<br/><br /><br/ >",
        "<a '>b",
        "<a \"b\">c",
        "<a b=c\"d>",
        "<a b=`c`>",
    ] {
        check(html);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]
    #[test]
    fn any_page_reads_the_same(
        html in "(<|>|/|=|'|\"|!|-|--|\\?| |\n|a|b|&|&amp;|&lt|&#x4|;|x|<!--|-->|<a |</a>|<p b='|title|<title>|</title>|<script>|</script>|<script|</script|<style>|</style|textarea|<xmp>|ä){0,30}"
    ) {
        check(&html);
    }
}

/// In XML mode: names keep their prefix, sections and instructions are what they are, and nothing is raw.
#[test]
fn xml_is_read_as_far_as_it_is_xml() {
    let seen = |xml: &str| {
        let mut out = Vec::new();
        let mut tokens = Tokenizer::xml(xml);
        while let Some(token) = tokens.next() {
            out.push(match token {
                Token::Start(tag) => {
                    let attrs: String = tokens.attrs().map(|a| format!(" {}={}", a.name, a.value())).collect();
                    format!("<{}|{}{attrs}{}>", tag.raw, tag.name.as_str(), if tag.self_closing { "/" } else { "" })
                }
                Token::End(tag) => format!("</{}>", tag.raw),
                Token::Text(text, kind) => format!("{kind:?}:{text}"),
                Token::Comment(text) => format!("!{text}"),
                Token::Doctype(text) => format!("!!{}", text.trim()),
                Token::Instruction(text) => format!("?{text}"),
            });
        }
        out.join(" ")
    };
    for (xml, expected) in [
        ("<?xml version='1.0'?><A:b c:D='1'/>", "?xml version='1.0' <A:b|b c:D=1/>"),
        ("<!DOCTYPE r [<!ENTITY a 'x>y'>]><r/>", "!!r <r|r/>"),
        ("<r><![CDATA[a<b>]]]]>c</r>", "<r|r> Cdata:a<b>]] Data:c </r>"),
        (
            "<title>a<b/></title><script><x/></script>",
            "<title|title> Data:a <b|b/> </title> <script|script> <x|x/> </script>",
        ),
        ("<!-- a > b --!> --><ü/>", "! a > b --!>  <ü|/>"),
        ("a < b & c <r", "Data:a < b & c "),
    ] {
        assert_eq!(seen(xml), expected, "{xml}");
    }
}
