/** Writes docs/events.md from the types of events, with an example of each. */
import { failureClass } from '../src/mail/failure-class.ts'
import type { RecipientMembers } from '../src/events/event-members.ts'
import { EVENT_TYPES, EVENTS, type EventType } from '../src/events/event-types.ts'
import type { EventData } from '../src/events/published-kinds.ts'

const MESSAGE = { queue_id: '4jXk6Z4NXcz1', sender: 'app@example.com' } as const

const ATTEMPT: RecipientMembers = {
  ...MESSAGE,
  recipient: 'ann@example.net',
  destination: 'example.net',
  relay: 'mx.example.net[192.0.2.25]:25',
  connection_use: 1,
  delay: 0.42,
  delays: [0.03, 0, 0.21, 0.18],
  status: '2.0.0',
  class: null,
  outcome: 'delivered',
  stage: 'end-of-data',
  reply: '250 2.0.0 Ok: queued as 7F2A1',
  reason: '250 2.0.0 Ok: queued as 7F2A1',
  login: null,
  tls: 'may',
  session: null,
  forced: false,
  attempts: 1,
  next_attempt_time: null,
  final: true,
}

const failed = (status: string, reply: string): RecipientMembers => ({
  ...ATTEMPT,
  status,
  class: failureClass({ status, reply, stage: 'rcpt' }).class,
  stage: 'rcpt',
  reply,
  reason: `host mx.example.net[192.0.2.25] said: ${reply} (in reply to RCPT TO command)`,
})

/** Data of an event of each type. */
export const EVENT_EXAMPLES: { readonly [T in EventType]: EventData[T] } = {
  'message.accepted': {
    ...MESSAGE,
    size: 2048,
    message_id: '<1234@example.com>',
    recipients: ['ann@example.net'],
    client_name: 'app.example.com',
    client_address: '192.0.2.10',
    uid: null,
    original_id: null,
    sasl_username: 'app',
    upstream_queue_id: null,
    upstream_client_name: null,
    upstream_client_address: null,
  },
  'message.removed': MESSAGE,
  'message.quarantined': { ...MESSAGE, text: 'content is unreadable: chunk 3 is missing' },
  'message.cancelled': { queue_id: MESSAGE.queue_id, by: 'token:app (127.0.0.1)', recipients: ['ann@example.net'] },
  'message.operated': { queue_id: MESSAGE.queue_id, operation: 'hold', by: 'page:alice (127.0.0.1)' },
  'recipient.delivered': ATTEMPT,
  'recipient.deferred': {
    ...failed('4.2.1', '450 4.2.1 mailbox is busy'),
    outcome: 'deferred',
    next_attempt_time: 1_795_390_800,
    final: false,
  },
  'recipient.bounced': { ...failed('5.1.1', '550 5.1.1 no such user'), outcome: 'bounced' },
  'recipient.expired': { ...failed('4.2.1', '450 4.2.1 mailbox is busy'), outcome: 'expired', attempts: 14 },
  'notice.sent': { ...MESSAGE, notice: 'failure', to: 'sender', notice_id: '4jXk7A1BQcz1' },
  'notice.dropped': { queue_id: '4jXk7A1BQcz1', sender: '', text: 'the sender is null: a notice about a notice is never sent' },
  'destination.died': {
    destination: 'example.net',
    until: 1_795_391_100,
    text: 'connect to mx.example.net[192.0.2.25]:25: Connection refused',
  },
  'destination.revived': { destination: 'example.net' },
  'destination.suspended': { destination: 'example.net', by: 'root', until: 1_795_398_000, text: 'maintenance of the provider' },
  'destination.resumed': { destination: 'example.net', by: 'root' },
  'provider.suspended': { provider: 'google', by: 'root', until: 1_795_398_000, text: 'rate limited' },
  'provider.resumed': { provider: 'google', by: 'root' },
  'oauth.failed': {
    oauth: 'm365',
    user: null,
    result: 'refused',
    text: 'invalid_client (AADSTS7000222): the client secret has expired: create a new one, write it to /etc/deferd/m365.secret, and reload',
  },
  'schedule.failed': {
    schedule: 'nightly-backup',
    action: 'backup',
    planned_time: 1_795_386_600,
    text: 'cannot write the backup /var/backups/deferd-2026-11-23.db: no space left on device; free some space on its disk, or name a file on another one',
  },
  'queue.limit_reached': { share: null, measure: 'messages', used: 10_000, limit: 10_000 },
  'queue.limit_cleared': { share: null, measure: 'messages', used: 9_500, limit: 10_000 },
  'quota.reached': {
    quota: 'app',
    key: 'app@example.com',
    measure: 'messages',
    span: 3_600,
    used: 1_000,
    limit: 1_000,
    percent: 100,
  },
  'quota.cleared': { quota: 'app', key: 'app@example.com', measure: 'messages', span: 3_600, used: 780, limit: 1_000 },
  'recipient.suppressed': {
    sender: 'news@example.com',
    recipient: 'bob@example.net',
    scope: 'example.com',
    reason: 'bounce',
    action: 'refused',
    text: '550 5.1.1 no such user',
  },
  'suppression.added': {
    scope: 'example.com',
    address: 'bob@example.net',
    reason: 'bounce',
    by: 'failures',
    until: 1_769_817_600,
    text: '550 5.1.1 no such user',
    entries: 1,
  },
  'suppression.removed': { scope: null, address: null, reason: null, by: 'root', until: null, text: null, entries: 12 },
  'suppression.stopped': { scope: 'example.com', entries: 1_000 },
  'store.trouble': { text: 'database or disk is full' },
  'store.recovered': {},
  'events.lost': { from: 1201, to: 1350, count: 97 },
}

const INTRODUCTION = `# Events for programs

deferd tells programs what became of their mail: by requests to a URL (webhooks), in files, on standard output, and by the
[admin API](api.md). An event is written in the same transaction as what happened, so that a crash neither loses nor invents one. Only types that
somebody has subscribed to are kept. Mail never waits for a subscriber.

## Subscribe

By a command, which prints the secret that signs the requests once. The subscription has effect at once, on all nodes of a shared queue:

\`\`\`
deferd webhook add app https://app.example.com/mail-events --types 'recipient.bounced,recipient.expired'
\`\`\`

Or in the configuration, which the commands list and test, and do not change:

\`\`\`toml
[events.app]
to = "https://app.example.com/mail-events"
types = ["recipient.*"] # default: all
destinations = ["*.example.net"] # default: all
senders = ["*@example.com"] # default: all
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=" # or a list while it is changed, the newest first

[events.archive]
to = "file:/var/log/deferd/events.jsonl" # or "stdout"
size = "100M" # then the file becomes events.jsonl.1
keep = 5
\`\`\`

\`deferd webhook list\`, \`deferd status\` and [the page](page.md) show what waits for each subscription and the last answer; \`deferd webhook test app\` sends one event of the type \`test\`,
and prints the answer with the time that it took;
\`deferd webhook secret app\` changes the secret, while the old one signs beside it for a day; \`deferd webhook replay app\` tries at once, and enables a
subscription that is disabled. The screen Webhooks of the page does the same.

On a shared queue, the node that has the shard of \`events:NAME\` sends a subscription. Give all nodes the same \`[events]\` tables (\`deferd node list\` names
nodes that differ): the table of the node that started or was reloaded last counts, a node whose own table is missing or different sends nothing
and logs why, and a subscription ends when no node has its table any more; \`deferd node forget\` removes the tables of a node that does not come back.

## Requests

Requests follow the [Standard Webhooks](https://www.standardwebhooks.com/) specification: a POST with \`{"type", "timestamp", "data"}\` as JSON and the
fields \`webhook-id\`, \`webhook-timestamp\` and \`webhook-signature\`. Any 2xx answer ends the try.

| topic      | rule                                                                                                                                     |
| ---------- | ---------------------------------------------------------------------------------------------------------------------------------------- |
| order      | the order of the transactions, one request at a time for each subscription                                                               |
| repetition | after a lost answer or a crash an event is sent again, with the same \`webhook-id\`: keep the ids that were handled                        |
| waits      | 5 s, doubled with each failure up to 1 h, spread by a fifth; \`Retry-After\` in seconds makes them longer, up to a day                     |
| time limit | 15 s for the look-up, the connection and the response                                                                                    |
| refusals   | an event that is refused six times with 4xx (not 408, 425, 429), within three minutes, is parked, and the next ones are sent; \`deferd webhook replay app --parked\` |
| 410        | disables the subscription until \`deferd webhook replay app\`, or until its table has another target                                                                                                              |
| redirects  | are not followed                                                                                                                         |
| addresses  | private addresses are refused after the look-up, and \`http://\`, unless \`allow_private\` (\`--allow-private\`)                             |
| batch      | with \`batch\` above 1 the body is an array of \`{"id", "type", "timestamp", "data"}\`; after a failure events are sent alone                 |
| format     | \`format = "cloudevents"\` sends CloudEvents 1.0, with the type \`deferd.recipient.bounced\`                                                |
| limits     | events are kept for \`event_retention\`, and at most \`event_limit\`; a subscriber that missed some gets \`events.lost\` with their number    |
| replay     | \`deferd webhook replay app\` tries at once; with \`--since 2h\`, events are sent again, with the ids that they had                                                  |

## A receiver in Node

\`\`\`js
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.WEBHOOK_SECRET)
createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  try {
    const { type, data } = webhook.verify(body, request.headers)
    if (type === 'recipient.bounced') console.log(data.recipient, data.reply)
    response.writeHead(204).end()
  } catch {
    response.writeHead(401).end()
  }
}).listen(8080)
\`\`\`

## A receiver in Python

\`\`\`python
import base64, hashlib, hmac, json, os
from http.server import BaseHTTPRequestHandler, HTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))

class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
        expected = "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        if any(hmac.compare_digest(expected, one) for one in self.headers["webhook-signature"].split()):
            event = json.loads(body)
            print(event["type"], event["data"])
            self.send_response(204)
        else:
            self.send_response(401)
        self.end_headers()

HTTPServer(("127.0.0.1", 8080), Receiver).serve_forever()
\`\`\`

A receiver should also refuse a \`webhook-timestamp\` that is more than five minutes away from its clock.

## TypeScript

\`deferd/events\` has the types of what a receiver gets; it has no values, and \`import type\` leaves nothing in the program.

\`\`\`ts
import type { WebhookBody } from 'deferd/events'

export function handle(body: WebhookBody): void {
  if (body.type === 'recipient.bounced') console.log(body.data.recipient, body.data.reply)
}
\`\`\`

| type          | of                                                                               |
| ------------- | -------------------------------------------------------------------------------- |
| \`WebhookBody\` | the body of a request; with \`batch\` above 1, the body is a \`WebhookBatch\`        |
| \`CloudEvent\`  | the body with \`format = "cloudevents"\`                                           |
| \`EventPage\`   | the answer of \`GET /api/v1/events\`, and its events, \`ListedEvent\`                |
| \`ListedEvent\` | also a line of a file, of standard output, and of \`Accept: application/x-ndjson\` |

## In tests

A world of the [test kit](testkit.md) has \`world.webhook(name, { handler })\`: a receiver in virtual time, so that an application's handler is tested
against days of failures in milliseconds; \`world.events()\` returns what all subscribers would get.

## Types

The members of \`data\` are those of the records of \`log_format = "json"\` ([monitoring.md](monitoring.md)); times are in seconds since 1970.
Types and members may be added; they are never renamed or removed. \`log_addresses\` keeps addresses out of them ([erasure.md](erasure.md#log-and-events)).
`

/** The text of docs/events.md. */
export function eventsPage(): string {
  const types = EVENT_TYPES.map(
    (type) => `### ${type}\n\n${sentence(EVENTS[type].meaning)}\n\n\`\`\`json\n${pretty(EVENT_EXAMPLES[type])}\n\`\`\`\n`,
  )
  return `${INTRODUCTION}\n${types.join('\n')}`
}

/** An object with one member per line. */
function pretty(data: object): string {
  const members = Object.entries(data).map(([name, value]) => `  ${JSON.stringify(name)}: ${textOf(value)}`)
  return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n}`
}

const textOf = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]` : JSON.stringify(value)

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
