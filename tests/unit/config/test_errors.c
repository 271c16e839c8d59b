/* Files that do not load: each mistake with its line and its words; and that no message ever shows
 * a value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "config_testing.h"

typedef struct mistake {
    const char *text;
    const char *report; /* the first line of it, or the part before '*' */
} mistake;

#define SERVER "mcpServers:\n  a: "
#define AGENT "agents:\n  a: "
#define RULE                                                                                       \
    "mcpServers: {a: {command: x}, bill: {command: x}}\n"                                          \
    "groups: {ops: {claims: {/g: {has: o}}}}\npolicy:\n  default: deny\n  rules:\n    - "

#define TOOL "mcpServers: {a: {command: x}}\npolicy:\n  tools:\n    "

static const mistake mistakes[] = {
    /* policy.tools */
    {TOOL "b.pay: {idempotency: {}}\n",
     "patchbay.yaml:4: policy.tools: there is no server or agent \"b\": did you mean \"a\"?"},
    {TOOL "a.pay: {idempotency: {argument: reference}}\n",
     "patchbay.yaml:4: policy.tools.a.pay.idempotency.argument: write a JSON pointer, *"},
    {TOOL "a.pay: {idempotency: {header: 'a b'}}\n",
     "patchbay.yaml:4: policy.tools.a.pay.idempotency.header: \"a b\" cannot name *"},
    {TOOL "a.pay: {idempotency: {keep: 721h}}\n",
     "patchbay.yaml:4: policy.tools.a.pay.idempotency.keep needs *"},
    {TOOL "a.pay: {idempotent: {}}\n",
     "patchbay.yaml:4: unknown key \"idempotent\" in policy.tools.a.pay: did you mean *"},
    {TOOL "a.p*: {idempotency: {}}\n    a.*y: {idempotency: {derive: true}}\n",
     "patchbay.yaml:5: policy.tools: \"a.*y\" and \"a.p*\" are equally specific, match *"},
    {TOOL "a.pay: {rate: 5/m}\n", "patchbay.yaml:4: policy.tools.a.pay.rate: a rate is written *"},
    {TOOL "a.pay: {rate: 2/min, cost: 3}\n",
     "patchbay.yaml:4: policy.tools.a.pay.cost: 3 is more than the 2 calls that one of *"},
    {TOOL "a.p*: {rate: 2/min}\n    a.*y: {rate: 3/min}\n",
     "patchbay.yaml:5: policy.tools: \"a.*y\" and \"a.p*\" are equally specific, match *"},
    {"policy:\n  rates:\n    principal: 5 per minute\n",
     "patchbay.yaml:3: policy.rates.principal: a rate is written *"},
    {TOOL "a.p*: {result: {bytes: 2K}}\n    a.*y: {result: {bytes: 3K}}\n",
     "patchbay.yaml:5: policy.tools: \"a.*y\" and \"a.p*\" are equally specific, match *"},
    {TOOL "a.pay: {result: {bytes: 1023}}\n",
     "patchbay.yaml:4: policy.tools.a.pay.result.bytes needs *"},
    {TOOL "'': {idempotency: {}}\n", "patchbay.yaml:4: policy.tools: a pattern has 1 to *"},
    /* agents */
    {AGENT "{}\n", "patchbay.yaml:2: agents.a: none of url, card and tools: *"},
    {AGENT "{url: 'http://x/', tools: ['*']}\n", "patchbay.yaml:2: agents.a: more than one of *"},
    {AGENT "{url: 'http://x/', card: 'http://x/c'}\n",
     "patchbay.yaml:2: agents.a: more than one of *"},
    {AGENT "{url: x}\n", "patchbay.yaml:2: agents.a.url: not a web address: *"},
    {AGENT "{url: 'grpc://x:1'}\n", "patchbay.yaml:2: agents.a.url: not a web address: *"},
    {AGENT "{card: 'http://u:p@x/'}\n", "patchbay.yaml:2: agents.a.card: a password does *"},
    {AGENT "{tools: []}\n", "patchbay.yaml:2: agents.a.tools needs a list of texts"},
    {AGENT "{url: 'http://x/', headers: {'a b': c}}\n",
     "patchbay.yaml:2: agents.a.headers: \"a b\" cannot name a header: *"},
    {AGENT "{url: 'http://x/', headers: {A2A-Version: '1.0'}}\n",
     "patchbay.yaml:2: agents.a.headers: the gateway sets A2A-Version itself: *"},
    {AGENT "{url: 'http://x/', headers: {Authorization: '${LINES}'}}\n",
     "patchbay.yaml:2: agents.a.headers.Authorization: a header value is visible ASCII *"},
    {AGENT "{url: 'http://x/', version: '2.0'}\n",
     "patchbay.yaml:2: agents.a.version needs one of auto, 0.1, 0.2, 0.3, 1.0"},
    {AGENT "{url: 'http://x/', binding: REST}\n",
     "patchbay.yaml:2: agents.a.binding needs one of auto, JSONRPC, HTTP+JSON, GRPC"},
    {AGENT "{url: 'http://x/', allow: ['10.0.0.0/99']}\n", "patchbay.yaml:2: agents.a.allow: *"},
    {"tls: {certificate: c, key: k, clientCa: a, requireClientCertificate: true}\nopen: true\n",
     "patchbay.yaml:2: open: requireClientCertificate authenticates clients and open admits *"},
    {"open: perhaps\n", "patchbay.yaml:1: open needs *"},
    {"a2a: {webhooks: ['/']}\n", "patchbay.yaml:1: a2a.webhooks: *"},
    {AGENT "{url: 'http://x/', verify: {required: true}}\n",
     "patchbay.yaml:2: agents.a.verify: required needs keys *"},
    {AGENT "{url: 'http://x/', verify: {jku: [x]}}\n",
     "patchbay.yaml:2: agents.a.verify.jku: not a web address: *"},
    {AGENT "{url: 'http://x/', tls: {ca: f}}\n",
     "patchbay.yaml:2: agents.a.tls: only an https:// address has TLS: *"},
    {AGENT "{url: 'https://x/', tls: {key: f}}\n",
     "patchbay.yaml:2: agents.a.tls: certificate and key belong together: *"},
    {"agents: {'a/b': {url: 'http://x/'}}\n", "patchbay.yaml:1: agents: \"a/b\" cannot name *"},
    {"agents: [a]\n", "patchbay.yaml:1: agents needs a map: *"},
    {"agents: {a: {url: 'http://x/'}, a: {url: 'http://x/'}}\n",
     "patchbay.yaml:1: \"a\" in agents stands twice, *"},
    {"agents: {a: {url: 'http://x/'}}\nmcpServers: {a: {command: x}}\n",
     "patchbay.yaml:1: agents: \"a\" is a server, too, *"},
    {AGENT "{url: 'http://x/', timeout: 1}\n", "patchbay.yaml:2: agents.a.timeout needs a *"},
    {"a2a: {publicUrl: 'https://x/'}\n", "patchbay.yaml:1: a2a.publicUrl: write the address *"},
    {"a2a: {publicUrl: x}\n", "patchbay.yaml:1: a2a.publicUrl: write the address *"},
    {"a2a: {hybrid: maybe}\n", "patchbay.yaml:1: a2a.hybrid needs true or false"},
    /* policy */
    {"policy: {rules: []}\n", "patchbay.yaml:1: policy.default is missing: *"},
    {"policy: {default: maybe}\n", "patchbay.yaml:1: policy.default needs one of deny, allow"},
    {"policy: {default: deny, locked: no}\n", "patchbay.yaml:1: policy.locked needs one of *"},
    {"policy: {default: deny, rules: {allow: x}}\n",
     "patchbay.yaml:1: policy.rules needs a list *"},
    {RULE "{who: {subject: x}}\n",
     "patchbay.yaml:6: policy.rules.1 has one of allow, deny and approve"},
    {RULE "{allow: x, deny: y}\n", "patchbay.yaml:6: policy.rules.1 has one of allow, deny and *"},
    {RULE "{alow: x}\n",
     "patchbay.yaml:6: unknown key \"alow\" in policy.rules.1: did you mean \"allow\"?"},
    {RULE "{allow: x, expr: '1 < 2'}\n",
     "patchbay.yaml:6: unknown key \"expr\" in policy.rules.1: *"},
    {RULE "{allow: x, who: {scope: r}}\n",
     "patchbay.yaml:6: unknown key \"scope\" in policy.rules.1.who: did you mean \"scopes\"?"},
    {RULE "allow: x\n      args: {path: y}\n",
     "patchbay.yaml:7: policy.rules.1.args: \"path\" is no pointer: *"},
    {RULE "allow: x\n      args:\n        /path: {prefx: y}\n",
     "patchbay.yaml:8: policy.rules.1.args: there is no operator \"prefx\": did you mean "
     "\"prefix\"?"},
    {RULE "{allow: x, args: {/n: {gt: many}}}\n",
     "patchbay.yaml:6: policy.rules.1.args: gt compares with a number, as JSON writes it"},
    {RULE "{allow: x, args: {/n: {}}}\n",
     "patchbay.yaml:6: policy.rules.1.args./n needs an operator and a value"},
    {RULE "{allow: x, args: {/u: {regex: '('}}}\n",
     "patchbay.yaml:6: policy.rules.1.args: this is no regular expression: *"},
    {RULE "{allow: 'resource:x', args: {/n: 1}}\n",
     "patchbay.yaml:6: policy.rules.1.args: only tools and prompts have arguments: *"},
    {RULE "{allow: x, method: resources/read, args: {/n: 1}}\n",
     "patchbay.yaml:6: policy.rules.1.args: only tools/call and prompts/get *"},
    {RULE "{deny: 'agent:*', method: SendMesage}\n",
     "patchbay.yaml:6: policy.rules.1.method: there is no such method: did you mean "
     "\"SendMessage\"?"},
    {RULE "{allow: x, method: tools/cal}\n", "patchbay.yaml:6: policy.rules.1.method: there is no "
                                             "such method: did you mean \"tools/call\"?"},
    {RULE "{allow: 'bil.pay'}\n", "patchbay.yaml:6: policy.rules.1.allow: there is no server or "
                                  "agent \"bil\": did you mean \"bill\"?"},
    {RULE "{deny: x, server: bil}\n", "patchbay.yaml:6: policy.rules.1.server: there is no server "
                                      "or agent \"bil\": did you mean \"bill\"?"},
    {RULE "{deny: 'agent:research'}\n",
     "patchbay.yaml:6: policy.rules.1.deny: there is no server or agent \"research\"*"},
    {RULE "{deny: 'agnet:x'}\n", "patchbay.yaml:6: policy.rules.1.deny: what stands before the "
                                 "colon is no kind: did you mean \"agent:\"? *"},
    {RULE "{deny: x, who: {group: op}}\n", "patchbay.yaml:6: policy.rules.1.who.group: there is no "
                                           "group of that name: did you mean \"ops\"?"},
    {RULE "{approve: x, by: sales}\n",
     "patchbay.yaml:6: policy.rules.1.by: there is no group of that name: *"},
    {RULE "{allow: x, by: ops}\n", "patchbay.yaml:6: policy.rules.1.by: only approve has it"},
    {RULE "{allow: x, who: {address: here}}\n",
     "patchbay.yaml:6: policy.rules.1.who.address: entry 1 is no address *"},
    {RULE "{allow: x, who: {header: {'a b': c}}}\n",
     "patchbay.yaml:6: policy.rules.1.who.header: \"a b\" cannot name a header field"},
    {RULE "{allow: x, who: {claims: {sub: c}}}\n",
     "patchbay.yaml:6: policy.rules.1.who.claims: \"sub\" is no pointer: *"},
    {"groups: {ops: {}}\npolicy: {default: deny}\n",
     "patchbay.yaml:1: groups.ops has no member: *"},
    {"groups: [ops]\n", "patchbay.yaml:1: groups needs a map: *"},
    {"groups: {'a b': {subject: x}}\npolicy: {default: deny}\n",
     "patchbay.yaml:1: groups: \"a b\" cannot be a name: *"},
    /* keys */
    {"workers: 1\nlisten: a:1\nlisen: x\n",
     "patchbay.yaml:3: unknown key \"lisen\": did you mean \"listen\"?"},
    {"listen: a:1\nfoobar: x\n", "patchbay.yaml:2: unknown key \"foobar\": remove it; *"},
    {"servers: {}\n", "patchbay.yaml:1: unknown key \"servers\": did you mean \"mcpServers\"?"},
    {SERVER "\n    comand: x\n",
     "patchbay.yaml:3: unknown key \"comand\" in mcpServers.a: did you mean \"command\"?"},
    {"{\"mcpServers\": {},\n\"separater\": \"/\"}",
     "patchbay.yaml:2: unknown key \"separater\": did you mean \"separator\"?"},
    {"limits:\n  headbytes: 1\n",
     "patchbay.yaml:2: unknown key \"headbytes\" in limits: did you mean \"headBytes\"?"},
    {"\"a\\x1b[2Jb\": 1\n", "patchbay.yaml:1: unknown key \"a?[2Jb\": remove it; *"},
    {"workers: 1\nworkers: 2\n", "patchbay.yaml:2: \"workers\" stands twice, first in line 1: *"},
    {"{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}",
     "patchbay.yaml:2: \"a\" in mcpServers stands twice, first in line 1: keep one"},
    {SERVER "{command: x, env: {A: 1, A: 2}}\n",
     "patchbay.yaml:2: \"A\" in mcpServers.a.env stands twice, *"},
    {SERVER "{url: 'http://x/', type: http, transport: http}\n",
     "patchbay.yaml:2: mcpServers.a: type and transport are the same: keep one"},
    {SERVER "{command: x, disabled: true, enabled: true}\n",
     "patchbay.yaml:2: mcpServers.a: disabled and enabled are the same: keep one"},
    {"profiles: {p: {tool: [a]}}\n",
     "patchbay.yaml:1: unknown key \"tool\" in profiles.p: did you mean \"tools\"?"},
    {"profiles: {p: {}, p: {}}\n", "patchbay.yaml:1: \"p\" in profiles stands twice, *"},
    {"profiles: {p: {servers: [b]}}\nmcpServers: {a: {command: x}}\n",
     "patchbay.yaml:1: profiles.p.servers: there is no server \"b\" below mcpServers"},
    {"profiles: {'a/b': {}}\n", "patchbay.yaml:1: profiles: \"a/b\" cannot be a name: *"},
    {"profiles: [p]\n", "patchbay.yaml:1: profiles needs a map: *"},
    {"profiles: {p: [a]}\n", "patchbay.yaml:1: profiles.p needs a map of keys: *"},
    {"profiles: {p: {mode: some}}\n", "patchbay.yaml:1: profiles.p.mode needs one of all, search"},
    {SERVER "{command: x, expose: [a]}\n", "patchbay.yaml:2: mcpServers.a.expose needs a map *"},
    {SERVER "{command: x, expose: {tools: a}}\n",
     "patchbay.yaml:2: mcpServers.a.expose.tools needs a list of texts"},
    {SERVER "{command: x, rename: {a: ''}}\n",
     "patchbay.yaml:2: mcpServers.a.rename: the new name of \"a\" needs 1 to 256 bytes"},
    {SERVER "{command: x, tools: [a], includeTools: [a]}\n",
     "patchbay.yaml:2: mcpServers.a: tools and includeTools are the same: keep one"},
    /* values */
    {"workers: many\n", "patchbay.yaml:1: workers needs a whole number from 0 to 256"},
    {"workers: -1\n", "patchbay.yaml:1: workers needs *"},
    {"workers: 257\n", "patchbay.yaml:1: workers needs *"},
    {"workers: 99999999999999999999999\n", "patchbay.yaml:1: workers needs *"},
    {"workers: 1K\n", "patchbay.yaml:1: workers needs *"},
    {"workers: [1]\n", "patchbay.yaml:1: workers needs *"},
    {"bareNames: yes\n", "patchbay.yaml:1: bareNames needs true or false"},
    {"limits: {bodyBytes: 2G}\n",
     "patchbay.yaml:1: limits.bodyBytes needs a size from 1K to 1G, such as 512K or 16M"},
    {"limits: {bodyBytes: 18446744073709551615G}\n", "patchbay.yaml:1: limits.bodyBytes needs *"},
    {"limits: {bodyBytes: 16T}\n", "patchbay.yaml:1: limits.bodyBytes needs *"},
    {"limits: {headTimeout: 10 parsecs}\n",
     "patchbay.yaml:1: limits.headTimeout needs a duration from 100ms to 1h, such as *"},
    {"limits: 5\n", "patchbay.yaml:1: limits needs a map of keys: *"},
    {"log: {level: loud}\n", "patchbay.yaml:1: log.level needs one of error, warn, info, debug"},
    {"separator: ....\n", "patchbay.yaml:1: separator needs 1 to 3 bytes"},
    {"separator: ''\n", "patchbay.yaml:1: separator needs 1 to 3 bytes"},
    {"workers: 1\nseparator: ab\n", "patchbay.yaml:2: separator: only . _ / : and - may *"},
    {"admin:\n  listen: ['127.0.0.1:1']\n",
     "patchbay.yaml:2: admin.listen: write entry 1 as unix:/FOLDER/NAME"},
    {"admin:\n  listen: ['unix:/a/b', 'unix:a']\n",
     "patchbay.yaml:2: admin.listen: write entry 2 as unix:/FOLDER/NAME"},
    {"admin: {listen: ['unix:/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa']}\n",
     "patchbay.yaml:1: admin.listen: the path of entry 1 is longer than 107 bytes, *"},
    {"admin: {listen: 'unix:/a/b'}\n", "patchbay.yaml:1: admin.listen needs a list of texts"},
    {"admin: {listen: ['unix:/a', 'unix:/b', 'unix:/c', 'unix:/d', 'unix:/e']}\n",
     "patchbay.yaml:1: admin.listen holds 5 entries, 4 is the most: *"},
    {"admin: {lisen: []}\n",
     "patchbay.yaml:1: unknown key \"lisen\" in admin: did you mean \"listen\"?"},
    {"admin: unix:/a\n", "patchbay.yaml:1: admin needs a map of keys: *"},
    {"listen: 8930\n", "patchbay.yaml:1: listen: write an address as host:port, *"},
    {"listen: a:65536\n", "patchbay.yaml:1: listen: *"},
    {"listen: ::1:80\n", "patchbay.yaml:1: listen: *"},
    {"listen: ':80'\n", "patchbay.yaml:1: listen: *"},
    {"listen: a/b:80\n", "patchbay.yaml:1: listen: *"},
    {"listen: []\n", "patchbay.yaml:1: listen needs an address *"},
    {"listen: {}\n", "patchbay.yaml:1: listen needs an address *"},
    {"allowedHosts: ['*']\n", "patchbay.yaml:1: allowedHosts: *"},
    {"trustedProxies: [proxy.example]\n",
     "patchbay.yaml:1: trustedProxies: \"proxy.example\" is no address and no network; *"},
    {"trustedProxies: [10.0.0.0/33]\n", "patchbay.yaml:1: trustedProxies: \"10.0.0.0/33\" *"},
    {"trustedProxies: ['10.0.0.0/8 ']\n", "patchbay.yaml:1: trustedProxies: *"},
    {"trustedProxies: ['*']\n", "patchbay.yaml:1: trustedProxies: *"},
    {"allowedOrigins: ['*']\n", "patchbay.yaml:1: allowedOrigins: *"},
    {"allowedOrigins: ['null']\n", "patchbay.yaml:1: allowedOrigins: *"},
    {"allowedOrigins: ['https://x/path']\n", "patchbay.yaml:1: allowedOrigins: *"},
    {"allowedOrigins: https://x\n", "patchbay.yaml:1: allowedOrigins needs a list of texts"},
    {"tls: {certificate: x}\n", "patchbay.yaml:1: tls: certificate and key belong together: *"},
    {"tls: {clientCa: x}\n", "patchbay.yaml:1: tls: clientCa needs a certificate *"},
    {"tls:\n  requireClientCertificate: true\n",
     "patchbay.yaml:1: tls: requireClientCertificate needs clientCa: *"},
    {"timeouts: {call: 2m, callTotal: 1m}\n", "patchbay.yaml:1: timeouts: call is longer *"},
    {"limits: {bodyBytes: 512M}\n", "patchbay.yaml:1: limits: bodyBytes is larger than heldBytes*"},
    {"keys: [hunter2]\n", "patchbay.yaml:1: keys: number 1 is no key: write 32 bytes as base64 *"},
    /* servers */
    {"mcpServers: [a]\n", "patchbay.yaml:1: mcpServers needs a map: *"},
    {SERVER "x\n", "patchbay.yaml:2: mcpServers.a needs a map of keys: *"},
    {SERVER "{}\n", "patchbay.yaml:2: mcpServers.a: neither command nor url: *"},
    {SERVER "{command: '', url: ''}\n", "patchbay.yaml:2: mcpServers.a: neither *"},
    {SERVER "{command: x, url: 'http://x/'}\n",
     "patchbay.yaml:2: mcpServers.a: both command and url: *"},
    {SERVER "{command: x, type: http}\n",
     "patchbay.yaml:2: mcpServers.a: a command is spoken to over stdio: *"},
    {SERVER "{url: 'http://x/', type: stdio}\n",
     "patchbay.yaml:2: mcpServers.a: type stdio needs a command: *"},
    {SERVER "{url: 'http://x/', type: websocket}\n",
     "patchbay.yaml:2: mcpServers.a.type needs one of auto, stdio, *"},
    {SERVER "{url: 'ftp://x/'}\n", "patchbay.yaml:2: mcpServers.a.url: not a web address: *"},
    {SERVER "{url: '/mcp'}\n", "patchbay.yaml:2: mcpServers.a.url: not a web address: *"},
    {SERVER "\n    url: 'https://u:s3cr3t@x/'\n",
     "patchbay.yaml:3: mcpServers.a.url: a password does not belong into an address: *"},
    {SERVER "{command: x, args: x}\n", "patchbay.yaml:2: mcpServers.a.args needs a list of texts"},
    {SERVER "{command: x, args: [a, ~]}\n",
     "patchbay.yaml:2: mcpServers.a.args: entry 2 is no text: put it in quotes"},
    {SERVER "{command: x, env: [A=b]}\n", "patchbay.yaml:2: mcpServers.a.env needs a map"},
    {SERVER "{command: x, env: {A: {}}}\n", "patchbay.yaml:2: mcpServers.a.env.A is no text: *"},
    {SERVER "{command: x, env: {A=B: x}}\n",
     "patchbay.yaml:2: mcpServers.a.env: \"A=B\" cannot name an environment variable: *"},
    {SERVER "{url: 'http://x/', headers: {'A B': x}}\n",
     "patchbay.yaml:2: mcpServers.a.headers: \"A B\" cannot name a header: *"},
    {SERVER "{url: 'http://x/', headers: {hOst: x}}\n",
     "patchbay.yaml:2: mcpServers.a.headers: the gateway sets hOst itself: remove it"},
    {SERVER "{url: 'http://x/', headers: {A: '${LINES}'}}\n",
     "patchbay.yaml:2: mcpServers.a.headers.A: a header value is visible ASCII *"},
    {SERVER "{command: x, tls: {ca: x}}\n", "patchbay.yaml:2: mcpServers.a.tls: only an *"},
    {SERVER "{url: 'https://x/', tls: {key: x}}\n",
     "patchbay.yaml:2: mcpServers.a.tls: certificate and key belong together: *"},
    {SERVER "{command: x, restart: {minDelay: 5s, maxDelay: 1s}}\n",
     "patchbay.yaml:2: mcpServers.a.restart: minDelay is longer than maxDelay: *"},
    {SERVER "{url: 'http://x/', sandbox: {}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox: a server with a url runs elsewhere: *"},
    {SERVER "{command: x, sandbox: {fs: [a]}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 1 is no absolute path *"},
    {SERVER "{command: x, sandbox: {fs: [/a, none]}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 2 is no absolute path *"},
    {SERVER "{command: x, sandbox: {fs: ['./a:rw']}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 1 is no absolute path *"},
    {SERVER "{command: x, sandbox: {fs: ['/a:rwx', ':rw']}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 2 is no absolute path *"},
    {SERVER "{command: x, sandbox: {fs: [/a, /b/../c]}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 2 is no absolute path *"},
    {SERVER "{command: x, sandbox: {fs: ['/a:rw', /ab, '/a/b/c:ro']}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 3 lies inside a writable one *"},
    {SERVER "{command: x, sandbox: {fs: [none, '//a/b', '/a/:rw']}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 2 lies inside a writable one *"},
    {SERVER "{command: x, sandbox: {fs: ['/a', '/a:rw']}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.fs: entry 1 lies inside a writable one *"},
    {SERVER "{command: x, sandbox: {memory: much}}\n",
     "patchbay.yaml:2: mcpServers.a.sandbox.memory needs a size *"},
    {SERVER "{command: x, sandbox: {network: true}}\n",
     "patchbay.yaml:2: unknown key \"network\" in mcpServers.a.sandbox: *"},
    {SERVER "{command: x, protocol: 2025-01-01}\n",
     "patchbay.yaml:2: mcpServers.a.protocol needs one of auto, legacy, modern, 2024-11-05, *"},
    {"mcpServers:\n  a_b: {command: x}\n  a b: {command: x}\n",
     "patchbay.yaml:3: warning: mcpServers: \"a b\" is shown as \"a_b\": *"},
    {"mcpServers:\n  '': {command: x}\n", "patchbay.yaml:2: mcpServers: \"\" cannot name *"},
    {"separator: _\nmcpServers:\n  a_b: {command: x}\n",
     "patchbay.yaml:3: mcpServers: \"a_b\" cannot be told from the separator *"},
    {"separator: __\nmcpServers:\n  a_: {command: x}\n",
     "patchbay.yaml:3: mcpServers: \"a_\" cannot be told from the separator *"},
    /* variables */
    {SERVER "{command: '${NOPE}'}\n",
     "patchbay.yaml:2: mcpServers.a.command: the environment variable NOPE is not set: *"},
    {SERVER "{command: '${NOPE}', disabled: false}\n",
     "patchbay.yaml:2: mcpServers.a.command: the environment variable NOPE is not set: *"},
    {"mcpServers:\n  a: {command: x, disabled: true}\n  b: {command: '${NOPE}'}\n",
     "patchbay.yaml:3: mcpServers.b.command: the environment variable NOPE is not set: *"},
    {SERVER "{command: '${TOKEN'}\n", "patchbay.yaml:2: mcpServers.a.command: ${ without its }: *"},
    {SERVER "{command: '${}'}\n", "patchbay.yaml:2: mcpServers.a.command: ${...} must name *"},
    {SERVER "{command: '${input:key}'}\n", "patchbay.yaml:2: mcpServers.a.command: ${...} must *"},
    {SERVER "{command: x, args: [a,\n  '${NOPE}']}\n",
     "patchbay.yaml:3: mcpServers.a.args: the environment variable NOPE is not set: *"},
    {"workers: ${TOKEN}\n", "patchbay.yaml:1: workers needs *"},
    {SERVER "{command: \"a\\0b\"}\n", "patchbay.yaml:2: mcpServers.a.command: a NUL byte *"},
    {"{\"mcpServers\": {\"a\": {\"command\": \"a\\u0000b\"}}}",
     "patchbay.yaml:1: mcpServers.a.command: a NUL byte *"},
    /* syntax */
    {"a: 1\n\tb: 2\n", "patchbay.yaml:2: not valid YAML: *"},
    {"a: [1\n", "patchbay.yaml:2: not valid YAML: *"},
    {"a: 'x\n", "patchbay.yaml:*"},
    {"a: \xff\n", "patchbay.yaml:1: not valid YAML: *"},
    {"x: 1\n\x01: 1\n", "patchbay.yaml:2: not valid YAML: *"},
    {"- a\n", "patchbay.yaml:1: the file needs a map of keys: *"},
    {"hello\n", "patchbay.yaml:1: the file needs a map of keys: *"},
    {"a: &x 1\n", "patchbay.yaml:1: anchors and tags are not read: *"},
    {"a: !!str 1\n", "patchbay.yaml:1: anchors and tags are not read: *"},
    {"a: &x [1]\nb: *x\n", "patchbay.yaml:1: anchors and tags are not read: *"},
    {"a: *x\n", "patchbay.yaml:1: aliases are not read: *"},
    {"workers: 1\n---\nworkers: 2\n", "patchbay.yaml:2: a second YAML document: *"},
    {"? [a]\n: 1\n", "patchbay.yaml:1: a key must be a plain text, *"},
    {"{\"a\": 1,\n}", "patchbay.yaml:2: not valid JSON: malformed input: check the commas *"},
    {"{\n// x\n\"a\": 1}",
     "patchbay.yaml:2: not valid JSON: malformed input: JSON has no comments*"},
    {"{\"a\": \"\xff\"}", "patchbay.yaml:1: not valid JSON: invalid UTF-8: *"},
    {"{\n\"x\\uDE00\": 1}", "patchbay.yaml:2: not valid JSON: half of a surrogate pair: *"},
    {"{\"$schema\":\n\"\\uD66D\\uDE00\"}", "patchbay.yaml:2: not valid JSON: half of a *"},
    {" {workers: 1}", "patchbay.yaml:1: not valid JSON: *"},
};

static void assert_report(const config_report *report, const char *text, const char *expected)
{
    buf shown;
    buf_init(&shown, 65536);
    config_report_write(report, &shown);
    assert_int_equal(shown.err, BAY_OK);
    bay_str all = buf_view(&shown);
    bay_str line = str_head(all, str_find(all, '\n'));
    bay_str wanted = str_of(expected);
    size_t star = str_find(wanted, '*');
    bool is_good =
        star < wanted.len ? str_starts(line, str_head(wanted, star)) : str_eq(line, wanted);
    if (!is_good) {
        print_error("%s\n  wanted %s\n  got    %.*s\n", text, expected, BAY_STR(line));
    }
    assert_true(is_good);
    assert_null(memmem(all.at, all.len, "s3cr3t", 6));
    buf_fini(&shown);
}

static void two_servers_of_one_shown_name_are_refused(void **state)
{
    (void)state;
    const config *self = NULL;
    config_report report;
    assert_int_equal(
        testing_load("mcpServers:\n  a_b: {command: x}\n  a b: {command: x}\n", &self, &report),
        BAY_ERR_SYNTAX);
    assert_int_equal(report.errors, 1);
    assert_int_equal(report.count, 2);
    assert_non_null(strstr(report.messages[1].text, "a second server would be shown as \"a_b\""));
    assert_int_equal(report.messages[1].line, 3);
}

static void each_mistake_is_told_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        const config *self = NULL;
        config_report report;
        bay_err err = testing_load(mistakes[i].text, &self, &report);
        if (err != BAY_ERR_SYNTAX) {
            print_error("%s\n  loaded\n", mistakes[i].text);
        }
        assert_int_equal(err, BAY_ERR_SYNTAX);
        assert_null(self);
        assert_report(&report, mistakes[i].text, mistakes[i].report);
    }
}

static void all_mistakes_are_told_at_once_by_line(void **state)
{
    (void)state;
    const config *self = NULL;
    config_report report;
    assert_int_equal(testing_load("mcpServers:\n  a: {comand: s3cr3t}\n  b: {command: '${NOPE}'}\n"
                                  "  c: {command: y, autoApprove: [z]}\nworkers: s3cr3t\n"
                                  "limits: {bodyBytes: 3, foo: 1}\n",
                                  &self, &report),
                     BAY_ERR_SYNTAX);
    assert_int_equal(report.errors, 5);
    assert_int_equal(report.warnings, 1);
    buf shown;
    buf_init(&shown, 65536);
    config_report_write(&report, &shown);
    buf_char(&shown, '\0');
    assert_string_equal(
        shown.at,
        "patchbay.yaml:2: unknown key \"comand\" in mcpServers.a: did you mean \"command\"?\n"
        "patchbay.yaml:3: mcpServers.b.command: the environment variable NOPE is not set: set it, "
        "or write ${NOPE:-default}\n"
        "patchbay.yaml:4: warning: mcpServers.c.autoApprove has no effect here: approval is the "
        "host's affair\n"
        "patchbay.yaml:5: workers needs a whole number from 0 to 256\n"
        "patchbay.yaml:6: limits.bodyBytes needs a size from 1K to 1G, such as 512K or 16M\n"
        "patchbay.yaml:6: unknown key \"foo\" in limits: remove it; docs/config.md lists the "
        "keys\n");
    buf_fini(&shown);
}

static void a_report_is_bounded_and_counts_the_rest(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 65536);
    for (int i = 0; i < 100; i++) {
        buf_printf(&text, "unheard%d: 1\n", i);
    }
    const config *self = NULL;
    config_report report;
    assert_int_equal(config_load_text(buf_view(&text), STR("x"), NULL, NULL, &self, &report),
                     BAY_ERR_SYNTAX);
    assert_int_equal(report.count, CONFIG_ERRORS);
    assert_int_equal(report.errors, 100);
    buf_clear(&text);
    config_report_write(&report, &text);
    assert_true(str_ends(buf_view(&text), STR("\nx: and 80 more\n")));
    buf_fini(&text);
}

/* `count` copies of `piece` between two texts. */
static bay_err load_many(const char *before, const char *piece, size_t count, const char *after,
                         config_report *report)
{
    buf text;
    buf_init(&text, 16 * 1024 * 1024);
    buf_str(&text, str_of(before));
    for (size_t i = 0; i < count; i++) {
        buf_str(&text, str_of(piece));
    }
    buf_str(&text, str_of(after));
    assert_int_equal(text.err, BAY_OK);
    const config *self = NULL;
    bay_err err = config_load_text(buf_view(&text), STR("x"), NULL, NULL, &self, report);
    config_free(self);
    buf_fini(&text);
    return err;
}

static void every_bound_holds(void **state)
{
    (void)state;
    config_report report;
    assert_int_equal(load_many("workers: 1\n", "# 345678\n", 500000, "", &report), BAY_ERR_LIMIT);
    assert_report(&report, "long", "x: longer than 4 MiB: *");
    assert_int_equal(load_many("a: ", "[", 33, "", &report), BAY_ERR_SYNTAX);
    assert_report(&report, "deep", "x:1: nested deeper than 32 levels: *");
    assert_int_equal(load_many("a: ", "[", 100000, "", &report), BAY_ERR_SYNTAX);
    assert_int_equal(load_many("{\"a\": ", "[", 100000, "", &report), BAY_ERR_SYNTAX);
    assert_report(&report, "deep", "x:1: not valid JSON: nested too deeply: *");
    assert_int_equal(load_many("a: [", "1,", 300000, "]", &report), BAY_ERR_SYNTAX);
    assert_report(&report, "many", "x:1: more than 262144 values: *");
    assert_int_equal(load_many("{\"a\": [", "1,", 300000, "1]}", &report), BAY_ERR_SYNTAX);
    assert_int_equal(load_many(SERVER "{command: x, args: [", "a,", 4096, "]}", &report), BAY_OK);
    assert_int_equal(load_many(SERVER "{command: x, args: [", "a,", 4097, "]}", &report),
                     BAY_ERR_SYNTAX);
    assert_report(&report, "args",
                  "x:2: mcpServers.a.args holds 4097 entries, 4096 is the most: *");
    assert_int_equal(load_many(SERVER "{command: ", "x", 4096, "}", &report), BAY_OK);
    assert_int_equal(load_many(SERVER "{command: ", "x", 4097, "}", &report), BAY_ERR_SYNTAX);
    assert_int_equal(load_many("mcpServers:\n  ", "n", 64, ": {command: x}", &report), BAY_OK);
    assert_int_equal(load_many("mcpServers:\n  ", "n", 65, ": {command: x}", &report),
                     BAY_ERR_SYNTAX);
}

static void servers_are_counted(void **state)
{
    (void)state;
    for (int count = 1024; count <= 1025; count++) {
        buf text;
        buf_init(&text, 1024 * 1024);
        buf_lit(&text, "mcpServers:\n");
        for (int i = 0; i < count; i++) {
            buf_printf(&text, "  s%d: {command: x}\n", i);
        }
        const config *self = NULL;
        config_report report;
        bay_err err = config_load_text(buf_view(&text), STR("x"), NULL, NULL, &self, &report);
        assert_int_equal(err, count == 1024 ? BAY_OK : BAY_ERR_SYNTAX);
        config_free(self);
        buf_fini(&text);
    }
}

static bool lookup_endless(void *context, bay_str name, bay_str *out)
{
    (void)name;
    *out = *(bay_str *)context;
    return true;
}

static void variables_cannot_blow_a_value_up(void **state)
{
    (void)state;
    char *megabyte = malloc(1 << 20);
    assert_non_null(megabyte);
    memset(megabyte, 'x', 1 << 20);
    bay_str value = {megabyte, 1 << 20};
    buf text;
    buf_init(&text, 1 << 20);
    buf_lit(&text, "mcpServers: {\"a\": {command: x, args: ['${A}${A}']}}");
    const config *self = NULL;
    config_report report;
    assert_int_equal(
        config_load_text(buf_view(&text), STR("x"), lookup_endless, &value, &self, &report),
        BAY_ERR_SYNTAX);
    buf_clear(&text);
    buf_lit(&text, "mcpServers: {\"a\": {command: x, args: [");
    for (int i = 0; i < 100; i++) {
        buf_lit(&text, "'${A}',");
    }
    buf_lit(&text, "]}}");
    assert_int_equal(
        config_load_text(buf_view(&text), STR("x"), lookup_endless, &value, &self, &report),
        BAY_ERR_SYNTAX);
    assert_report(&report, "huge", "x: too much for one configuration: *");
    buf_fini(&text);
    free(megabyte);
}

static void a_file_that_cannot_be_read_says_why(void **state)
{
    (void)state;
    const config *self = NULL;
    config_report report;
    assert_int_equal(config_load_file("/nonexistent/x.yaml", false, &self, &report),
                     BAY_ERR_NOT_FOUND);
    assert_report(&report, "missing", "/nonexistent/x.yaml: cannot be opened: No such file *");
    assert_int_equal(config_load_file("/", false, &self, &report), BAY_ERR_IO);
    assert_report(&report, "folder", "/: cannot be read: Is a directory: *");
    assert_int_equal(config_load_file("/dev/zero", false, &self, &report), BAY_ERR_LIMIT);
    assert_null(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_servers_of_one_shown_name_are_refused),
        cmocka_unit_test(each_mistake_is_told_with_its_line),
        cmocka_unit_test(all_mistakes_are_told_at_once_by_line),
        cmocka_unit_test(a_report_is_bounded_and_counts_the_rest),
        cmocka_unit_test(every_bound_holds),
        cmocka_unit_test(servers_are_counted),
        cmocka_unit_test(variables_cannot_blow_a_value_up),
        cmocka_unit_test(a_file_that_cannot_be_read_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
