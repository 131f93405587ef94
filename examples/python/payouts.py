import json, os, threading, time, uuid
from urllib.parse import quote
from urllib.request import Request, urlopen

API = os.environ.get("LEASEHOLD_URL", "http://127.0.0.1:7070")

def call(method, path, body=None, timeout=5):  # a refusal is an HTTPError, its body {code, message, ...}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(API + path, data, method=method), timeout=timeout) as answer:
        return json.load(answer)

session = call("POST", "/v1/sessions", {"client": "payout-worker", "keepalive": "app", "max_hold_ms": 600_000})
session_id, lock = session["session_id"], "/v1/locks/" + quote("payouts/nightly", safe="")

def keep_alive():
    while True:
        try:
            call("POST", f"/v1/sessions/{session_id}/keepalive", {})
        except OSError:  # held() tells whether it matters
            pass
        time.sleep(session["keepalive_every_s"])

def held(token):
    try:
        answer = call("GET", f"{lock}/held?token={token}", timeout=0.5)
        return answer["held"] and "revoking" not in answer
    except OSError:
        return False

threading.Thread(target=keep_alive, daemon=True).start()
try:
    ask = {"session_id": session_id, "wait_ms": 30_000, "request": str(uuid.uuid4())}
    token = call("POST", f"{lock}/acquire", ask, timeout=35)["token"]
    for batch in ["b1", "b2"]:
        if not held(token):
            raise SystemExit("the lock is lost")
        print(f"pay {batch} under token {token}")  # UPDATE ... WHERE fence <= token
finally:
    call("DELETE", f"/v1/sessions/{session_id}")
