// kafka-protocol as a runner: cargo build --release && kwire conformance codec -- target/release/runner
// Its structs have no JSON form: of messages, the bytes of decoded and encoded objects are compared.
use std::io::{Read, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader, RequestKind, ResponseHeader, ResponseKind};
use kafka_protocol::protocol::{Decodable, Encodable, Message};
use kafka_protocol::records::RecordBatchDecoder;
use serde_json::{json, Value};

type Outcome = Result<Value, String>;

fn header<T: Message + Encodable + Decodable>(mut data: Bytes, version: i16) -> Outcome {
    if version < T::VERSIONS.min || version > T::VERSIONS.max {
        return Ok(json!({"unsupported": "no such version"}));
    }
    let header = T::decode(&mut data, version).map_err(|e| format!("{e:#}"))?;
    let mut out = BytesMut::new();
    header.encode(&mut out, version).map_err(|e| format!("encode: {e:#}"))?;
    Ok(json!({"bytes": hex::encode(out)}))
}

fn message(name: &str, mut data: Bytes, version: i16) -> Outcome {
    for key in ApiKey::iter() {
        let range = key.valid_versions();
        let is_request = name == format!("{key:?}Request");
        if !is_request && name != format!("{key:?}Response") || version < range.min || version > range.max {
            continue;
        }
        let mut out = BytesMut::new();
        let encoded = if is_request {
            let body = RequestKind::decode(key, &mut data, version).map_err(|e| format!("{e:#}"))?;
            body.encode(&mut out, version)
        } else {
            let body = ResponseKind::decode(key, &mut data, version).map_err(|e| format!("{e:#}"))?;
            body.encode(&mut out, version)
        };
        return Ok(match encoded {
            Ok(()) => json!({"bytes": hex::encode(out)}),
            Err(_) => json!({"accepted": true}), // it was decoded, and cannot be written
        });
    }
    Ok(json!({"unsupported": "no such request or response"}))
}

fn run(task: &Value) -> Outcome {
    if task["op"] == "encode" {
        return Ok(json!({"unsupported": "decodes only"}));
    }
    let data = Bytes::from(hex::decode(task["bytes"].as_str().unwrap()).unwrap());
    let (name, version) = (task["type"].as_str().unwrap(), task["version"].as_i64().unwrap() as i16);
    match (task["chapter"].as_str().unwrap(), name) {
        ("messages", _) => message(name, data, version),
        ("headers", "RequestHeader") => header::<RequestHeader>(data, version),
        ("headers", "ResponseHeader") => header::<ResponseHeader>(data, version),
        ("batches", _) if version == 2 => RecordBatchDecoder::decode_all(&mut data.clone())
            .map(|_| json!({"accepted": true}))
            .map_err(|e| format!("{e:#}")),
        _ => Ok(json!({"unsupported": "only messages, headers and batches of magic 2"})),
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let (mut input, mut output, mut size) = (std::io::stdin().lock(), std::io::stdout().lock(), [0; 4]);
    while input.read_exact(&mut size).is_ok() {
        let mut text = vec![0; u32::from_be_bytes(size) as usize];
        input.read_exact(&mut text).unwrap();
        let task: Value = serde_json::from_slice(&text).unwrap();
        let response = match catch_unwind(AssertUnwindSafe(|| run(&task))) {
            Ok(outcome) => outcome.unwrap_or_else(|why| json!({"rejected": why})),
            Err(_) => json!({"rejected": "panic"}),
        };
        let text = response.to_string().into_bytes();
        output.write_all(&(text.len() as u32).to_be_bytes()).unwrap();
        output.write_all(&text).unwrap();
        output.flush().unwrap();
    }
}
