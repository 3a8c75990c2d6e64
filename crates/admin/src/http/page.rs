//! The dashboard: one page, its style and its script, all in the binary.
//!
//! Invariant: the page loads nothing from elsewhere and its script makes no HTML out of text; the policy it
//! is sent with has the browser see to both.

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;

/// What the browser may do with the page: load its own style and script, and ask its own address.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                          img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                          require-trusted-types-for 'script'; trusted-types 'none'";

pub(super) async fn html() -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, include_str!("assets/dashboard.html"))
}

pub(super) async fn css() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("assets/dashboard.css"))
}

pub(super) async fn js() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("assets/dashboard.js"))
}
