"""A small S3 for tests, in memory and on loopback, stricter than most: it checks signatures, dates, regions, hashes of
bodies, session tokens and permissions as AWS documents them, and was written from those documents, not from our client.
It can be told to fail, and tells what it was asked.
"""

import base64
import datetime
import hashlib
import hmac
import http.server
import itertools
import re
import socket
import ssl
import struct
import threading
import urllib.parse
from xml.sax.saxutils import escape

PAGE_KEYS = 1000
PART_BYTES_MIN = 5 << 20
SKEW_S = 15 * 60
UNRESERVED = "-_.~"


class Refusal(Exception):
    def __init__(self, status, code, message="", more="", headers=()):
        super().__init__(code)
        self.status, self.code, self.message, self.more, self.headers = status, code, message, more, headers


class User:
    def __init__(self, secret, token="", denied=()):
        self.secret, self.token, self.denied = secret, token, set(denied)


class Object:
    def __init__(self, body, etag, meta):
        self.body, self.etag, self.meta = body, etag, meta


def encode(text, safe=""):
    return urllib.parse.quote(text, safe=safe + UNRESERVED)


def hmac_sha256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        raw_path, _, raw_query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(raw_query, keep_blank_values=True))
        bucket, _, key = urllib.parse.unquote(raw_path)[1:].partition("/")
        if self.server.on_request:
            self.server.on_request(self.client_address[0], self.command, key)
        with self.server.lock:
            self.server.asked.append((self.command, self.path))
            fault = next((fault for fault in self.server.faults if fault.wants(self.command, self.path)), None)
        if fault and not fault.after:
            return self.fail(fault)
        try:
            user = self.authenticate(body, raw_path, raw_query)
            with self.server.lock:
                status, headers, answer = self.act(user, bucket, key, query, body)
        except Refusal as refusal:
            status, headers = refusal.status, list(refusal.headers)
            answer = (f"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{refusal.code}</Code>"
                      f"<Message>{escape(refusal.message)}</Message>{refusal.more}</Error>").encode()
        if fault:
            return self.fail(fault)
        self.answer(status, headers, answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

    def fail(self, fault):
        if fault.status:
            return self.answer(fault.status, [], b"<Error><Code>SlowDown</Code><Message>slow down</Message></Error>")
        # Closed with a reset: the client has no way to know what became of its request.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.wfile = open("/dev/null", "wb")
        self.connection.close()

    def answer(self, status, headers, answer):
        self.send_response(status)
        headers = dict(headers)
        headers.setdefault("Content-Length", str(len(answer)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def authenticate(self, body, raw_path, raw_query):
        """https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html"""
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
                             r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization") or "")
        if not match:
            raise Refusal(403, "AccessDenied", "not signed")
        access, day, region, names, signature = match.groups()
        names = names.split(";")
        user = self.server.users.get(access)
        if not user:
            raise Refusal(403, "InvalidAccessKeyId")
        must = {name.lower() for name in self.headers if name.lower().startswith("x-amz-")} | {"host"}
        if names != sorted(names) or not must <= set(names):
            raise Refusal(403, "AccessDenied", "headers that must be signed are not")
        stamp = self.headers["x-amz-date"]
        then = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ")
        now = datetime.datetime.utcnow() + datetime.timedelta(seconds=self.server.clock_off_s)
        if abs((now - then).total_seconds()) > SKEW_S:
            raise Refusal(403, "RequestTimeTooSkewed")
        if day != stamp[:8]:
            raise Refusal(400, "AuthorizationHeaderMalformed")
        if region != self.server.region:
            raise Refusal(400, "AuthorizationHeaderMalformed", more=f"<Region>{self.server.region}</Region>")
        content_hash = self.headers.get("x-amz-content-sha256")
        if content_hash is None:
            raise Refusal(400, "InvalidRequest", "no x-amz-content-sha256")
        if content_hash != hashlib.sha256(body).hexdigest():
            raise Refusal(400, "XAmzContentSHA256Mismatch")
        path = encode(urllib.parse.unquote(raw_path), "/")
        pairs = sorted((encode(name), encode(value))
                       for name, value in urllib.parse.parse_qsl(raw_query, keep_blank_values=True))
        canonical = "\n".join([
            self.command, path, "&".join(f"{name}={value}" for name, value in pairs),
            "".join(f"{name}:{' '.join(self.headers[name].split())}\n" for name in names), ";".join(names),
            content_hash])
        scope = f"{day}/{region}/s3/aws4_request"
        to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = hmac_sha256(("AWS4" + user.secret).encode(), day)
        for part in (region, "s3", "aws4_request"):
            key = hmac_sha256(key, part)
        if not hmac.compare_digest(hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest(), signature):
            raise Refusal(403, "SignatureDoesNotMatch")
        if (self.headers.get("x-amz-security-token") or "") != user.token:
            raise Refusal(400, "InvalidToken")
        return user

    def act(self, user, bucket, key, query, body):
        def allow(action):
            if action in user.denied:
                raise Refusal(403, "AccessDenied")

        if self.headers.get("x-amz-acl"):
            raise Refusal(400, "AccessControlListNotSupported")
        objects = self.server.buckets.get(bucket)
        if objects is None:
            raise Refusal(404, "NoSuchBucket")
        if not key:
            if self.command != "GET" or query.get("list-type") != "2":
                raise Refusal(405, "MethodNotAllowed")
            allow("s3:ListBucket")
            return self.list(objects, query)
        if self.command in ("GET", "HEAD"):
            allow("s3:GetObject")
            if key not in objects:
                raise Refusal(403 if "s3:ListBucket" in user.denied else 404,
                              "AccessDenied" if "s3:ListBucket" in user.denied else "NoSuchKey")
            return self.get(objects[key])
        if self.command == "DELETE" and "uploadId" in query:
            allow("s3:AbortMultipartUpload")
            if not self.server.uploads.pop(query["uploadId"], None):
                raise Refusal(404, "NoSuchUpload")
            return 204, [], b""
        if self.command == "DELETE":
            allow("s3:DeleteObject")
            objects.pop(key, None)  # one that is not there is no error
            return 204, [], b""
        allow("s3:PutObject")
        meta = {name.lower(): value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
        if self.command == "PUT" and "uploadId" in query:
            parts = self.upload(query)[2]
            etag = '"' + hashlib.md5(body).hexdigest() + '"'
            parts[int(query["partNumber"])] = (etag, body)
            return 200, [("ETag", etag)], b""
        if self.command == "PUT":
            objects[key] = Object(body, '"' + hashlib.md5(body).hexdigest() + '"', meta)
            return 200, [("ETag", objects[key].etag)], b""
        if "uploads" in query:
            upload = f"upload/{next(self.server.numbers)}+="
            self.server.uploads[upload] = (bucket, key, {}, meta)
            return 200, [], f"<R><Bucket>{bucket}</Bucket><UploadId>{upload}</UploadId></R>".encode()
        return self.complete(objects, key, query, body)

    def upload(self, query):
        upload = self.server.uploads.get(query.get("uploadId"))
        if not upload:
            raise Refusal(404, "NoSuchUpload")
        return upload

    def complete(self, objects, key, query, body):
        _, upload_key, parts, meta = self.upload(query)
        wanted = re.findall(rb"<Part><PartNumber>(\d+)</PartNumber><ETag>([^<]+)</ETag></Part>", body)
        numbers = [int(number) for number, _ in wanted]
        if upload_key != key or not numbers or numbers != sorted(parts):
            raise Refusal(400, "InvalidPart")
        for number, etag in wanted:
            if parts[int(number)][0] != etag.decode():
                raise Refusal(400, "InvalidPart")
        if any(len(parts[number][1]) < PART_BYTES_MIN for number in numbers[:-1]):
            raise Refusal(400, "EntityTooSmall")
        whole = b"".join(parts[number][1] for number in numbers)
        digests = b"".join(hashlib.md5(parts[number][1]).digest() for number in numbers)
        objects[key] = Object(whole, f'"{hashlib.md5(digests).hexdigest()}-{len(numbers)}"', meta)
        del self.server.uploads[query["uploadId"]]
        return 200, [], b"<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult/>"

    def get(self, found):
        if self.headers.get("If-Match") not in (None, found.etag):
            raise Refusal(412, "PreconditionFailed")
        size = len(found.body)
        headers = [("ETag", found.etag), ("Accept-Ranges", "bytes"), *found.meta.items()]
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if not match:
            return 200, headers + [("Content-Length", str(size))], found.body
        begin, last = int(match.group(1)), min(int(match.group(2)), size - 1)
        if begin >= size:
            raise Refusal(416, "InvalidRange")
        headers.append(("Content-Range", f"bytes {begin}-{last}/{size}"))
        return 206, headers, found.body[begin:last + 1]

    def list(self, objects, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = base64.b64decode(query["continuation-token"]).decode() if "continuation-token" in query else ""
        entries, seen = [], set()
        for key in sorted(objects, key=str.encode):
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key[:cut + 1] if cut >= 0 else key
            if not key.startswith(prefix) or name in seen or (after and name.encode() <= after.encode()):
                continue
            seen.add(name)
            entries.append((name, cut >= 0))
        page, rest = entries[:PAGE_KEYS], entries[PAGE_KEYS:]

        def shown(text):
            return urllib.parse.quote_plus(text, safe="/") if query.get("encoding-type") == "url" else escape(text)

        xml = ['<?xml version="1.0" encoding="UTF-8"?>\n'
               '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
               + ("<EncodingType>url</EncodingType>" if query.get("encoding-type") == "url" else "") +
               f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>"]
        if rest:
            token = base64.b64encode(page[-1][0].encode()).decode()
            xml.append(f"<NextContinuationToken>{token}</NextContinuationToken>")
        for name, is_folder in page:
            if is_folder:
                xml.append(f"<CommonPrefixes><Prefix>{shown(name)}</Prefix></CommonPrefixes>")
            else:
                xml.append(f"<Contents><Key>{shown(name)}</Key><ETag>{escape(objects[name].etag, {chr(34): '&quot;'})}"
                           f"</ETag><Size>{len(objects[name].body)}</Size></Contents>")
        return 200, [("Content-Type", "application/xml")], ("".join(xml) + "</ListBucketResult>").encode()


class Fault:
    """Fails the next `times` requests of this method whose path matches: with a status, or by a reset; before or after
    the request has been done."""

    def __init__(self, times, method=".*", path=".*", status=None, after=False):
        self.times, self.method, self.path, self.status, self.after = times, method, path, status, after

    def wants(self, method, path):
        if self.times <= 0 or not re.fullmatch(self.method, method) or not re.search(self.path, path):
            return False
        self.times -= 1
        return True


class S3Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, region="us-east-1", host="127.0.0.1"):
        self.region = region
        self.scheme = "http"
        self.users = {}
        self.buckets = {}  # name -> key -> Object
        self.uploads = {}
        self.numbers = itertools.count()  # of uploads
        self.faults = []
        self.asked = []
        self.clock_off_s = 0
        self.on_request = None  # is told of each: (address of who asks, method, key), and may take its time
        self.lock = threading.Lock()
        super().__init__((host, 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def server_bind(self):
        # That of http.server asks DNS for our name.
        socket.socket.bind(self.socket, self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address

    def handle_error(self, request, client_address):
        pass  # a client that has gone

    @property
    def url(self):
        return f"{self.scheme}://{self.server_name}:{self.server_port}"

    def use_tls(self, certificate, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "https"

    def put(self, bucket, key, body):
        self.buckets[bucket][key] = Object(body, '"' + hashlib.md5(body).hexdigest() + '"', {})

    def get(self, bucket, key):
        return self.buckets[bucket][key].body

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join(10)
