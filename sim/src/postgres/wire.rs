//! PostgreSQL's messages as the models write and read them. Written from the protocol's documentation, and
//! deliberately not shared with the wing under test.

/// Appends a message.
pub fn put(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

/// Appends a text and its NUL.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Appends ErrorResponse or NoticeResponse.
pub fn put_complaint(out: &mut Vec<u8>, tag: u8, severity: &str, code: &str, message: &str) {
    let mut body = Vec::new();
    for (field, text) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', message)] {
        body.push(field);
        put_text(&mut body, text);
    }
    body.push(0);
    put(out, tag, &body);
}

/// A field of an ErrorResponse's or NoticeResponse's body.
pub fn field(body: &[u8], which: u8) -> String {
    let mut rest = body;
    while let Some((&name, after)) = rest.split_first() {
        if name == 0 {
            break;
        }
        let end = after.iter().position(|&b| b == 0).unwrap_or(after.len());
        if name == which {
            return String::from_utf8_lossy(&after[..end]).into_owned();
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    String::new()
}

/// Appends ParameterStatus.
pub fn put_parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    let mut body = Vec::new();
    put_text(&mut body, name);
    put_text(&mut body, value);
    put(out, b'S', &body);
}

/// Appends RowDescription of text columns.
pub fn put_description(out: &mut Vec<u8>, names: &[&str]) {
    let mut body = (names.len() as u16).to_be_bytes().to_vec();
    for name in names {
        put_text(&mut body, name);
        body.extend_from_slice(&0u32.to_be_bytes());
        body.extend_from_slice(&0u16.to_be_bytes());
        body.extend_from_slice(&25u32.to_be_bytes());
        body.extend_from_slice(&(-1i16).to_be_bytes());
        body.extend_from_slice(&(-1i32).to_be_bytes());
        body.extend_from_slice(&0u16.to_be_bytes());
    }
    put(out, b'T', &body);
}

/// Appends DataRow.
pub fn put_row(out: &mut Vec<u8>, cells: &[&[u8]]) {
    let mut body = (cells.len() as u16).to_be_bytes().to_vec();
    for cell in cells {
        body.extend_from_slice(&(cell.len() as u32).to_be_bytes());
        body.extend_from_slice(cell);
    }
    put(out, b'D', &body);
}

/// Appends CommandComplete.
pub fn put_complete(out: &mut Vec<u8>, tag: &str) {
    let mut body = Vec::new();
    put_text(&mut body, tag);
    put(out, b'C', &body);
}

/// Appends Query.
pub fn put_query(out: &mut Vec<u8>, text: &str) {
    let mut body = Vec::new();
    put_text(&mut body, text);
    put(out, b'Q', &body);
}

/// Appends Parse.
pub fn put_parse(out: &mut Vec<u8>, name: &str, text: &str) {
    let mut body = Vec::new();
    put_text(&mut body, name);
    put_text(&mut body, text);
    body.extend_from_slice(&0u16.to_be_bytes());
    put(out, b'P', &body);
}

/// Appends Bind with text parameters.
pub fn put_bind(out: &mut Vec<u8>, portal: &str, statement: &str, values: &[&str]) {
    let mut body = Vec::new();
    put_text(&mut body, portal);
    put_text(&mut body, statement);
    body.extend_from_slice(&0u16.to_be_bytes());
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body.extend_from_slice(&0u16.to_be_bytes());
    put(out, b'B', &body);
}

/// Appends Describe or Close of a statement (`S`) or portal (`P`).
pub fn put_about(out: &mut Vec<u8>, tag: u8, what: u8, name: &str) {
    let mut body = vec![what];
    put_text(&mut body, name);
    put(out, tag, &body);
}

/// Appends Execute.
pub fn put_execute(out: &mut Vec<u8>, portal: &str, rows: u32) {
    let mut body = Vec::new();
    put_text(&mut body, portal);
    body.extend_from_slice(&rows.to_be_bytes());
    put(out, b'E', &body);
}

/// The first whole message: its tag, its body, its length. `None`: not whole yet.
pub fn message(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let length: [u8; 4] = bytes.get(1..5)?.try_into().ok()?;
    let total = u32::from_be_bytes(length) as usize + 1;
    Some((bytes[0], bytes.get(5..total)?, total))
}

/// Takes a text up to its NUL from the front.
pub fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().position(|&b| b == 0)?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    *rest = &rest[end + 1..];
    Some(text)
}

/// Takes a number of two bytes from the front.
pub fn take_u16(rest: &mut &[u8]) -> Option<u16> {
    let (head, tail) = rest.split_first_chunk::<2>()?;
    *rest = tail;
    Some(u16::from_be_bytes(*head))
}

/// Takes a number of four bytes from the front.
pub fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_be_bytes(*head))
}
