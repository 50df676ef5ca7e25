/**
 * Calls of all methods that write mail or records, as a relay makes them, and what the queue holds after them. Each message has a sender
 * of its own, by which it is recognized.
 */
import { recipientId, type DeliveryRequest, type MessageId } from '../../../src/mail/message.ts'
import type { AccessToken } from '../../../src/store/records/access-token.ts'
import { decodeHistory } from '../../../src/store/history-record.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import type { NewMessage } from '../../../src/store/new-message.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import { begin } from '../../conformance/audit.ts'
import {
  attempt,
  bounced,
  claim,
  deferred,
  delivered,
  first,
  LIFETIME,
  mail,
  MIN,
  OK,
  ownerOf,
  settleOne,
  T0,
  type Mail,
} from '../../conformance/mail.ts'
import { operate } from '../operate.ts'

const TOKEN: AccessToken = {
  name: 'ci',
  role: 'viewer',
  content: false,
  destinations: null,
  hash: 'a'.repeat(64),
  addedAt: T0,
  addedBy: 'root',
  expiresAt: null,
  lastUsedAt: null,
}

const ENTRY = { subject: 'sender', key: 'spam.example', action: 'REJECT', addedAt: T0, addedBy: 'root', expiresAt: null } as const

/** A chunk of a content that is staged. */
const PART = Buffer.alloc(65_536, 'x')

/** Runs the story. Resolves with what each call has answered, without ids. Rejects when a call fails. */
export async function tell(store: QueueStore): Promise<readonly (readonly [name: string, answer: unknown])[]> {
  const answers: [name: string, answer: unknown][] = []
  const told = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    try {
      const answer = await call()
      answers.push([name, withoutIds(answer)])
      return answer
    } catch (error) {
      throw new Error(`${name} failed`, { cause: error })
    }
  }
  const entry = (name: string, options: Mail = {}): NewMessage => mail(store, { sender: `${name}@us.example`, ...options })
  const queued = async (name: string, options: Mail = {}): Promise<MessageId> => {
    const one = entry(name, options)
    await told(`enqueue ${name}`, () => store.enqueue(one))
    return one.message.id
  }
  const two = [{ address: 'ann@far.example' }, { address: 'bob@far.example' }]

  // A message whose content is staged, and one that is abandoned.
  await told('ids', async () => (await store.nextIds(3)).length)
  const staged = entry('staged', { content: [PART, Buffer.from('end\r\n')] })
  await told('stage', () => store.stage(staged.message.contentId, 0, [Buffer.from(PART)]))
  await told('enqueue staged', () => store.enqueue({ ...staged, content: [Buffer.from('end\r\n')] }))
  const abandoned = store.nextId()
  await told('stage abandoned', () => store.stage(abandoned, 0, [Buffer.from(PART)]))
  await told('unstage', () => store.unstage(abandoned))
  const fromFile = { ...entry('file', { hold: true }), maildropFile: 'f1' }
  await told('enqueue file', () => store.enqueue(fromFile))
  await told('forget the file', () => store.forgetMaildropFiles(['f1']))

  // Deliveries: success, failure, refusal, a claim and its return.
  const born = await queued('born', { leased: true })
  await told('settle born', () => settleOne(store, born, delivered(first(born), T0)))
  const later = await queued('later', { to: two })
  const { requests } = await told('claim', () => claim(store, T0))
  const ofLater = requests.filter(({ message }) => message.id === later)
  await told('give back', () => store.giveBack(idsIn(requests.filter(({ message }) => message.id !== later)), ownerOf(store)))
  await told('settle later', () =>
    store.settle({
      owner: ownerOf(store),
      message: later,
      recipients: idsIn(ofLater).map((id) => deferred(id, T0 + 2 * MIN)),
      attempts: idsIn(ofLater).map((id) => attempt(id, T0)),
      warnAt: T0 + MIN,
    }),
  )
  await told('due for a warning', () => store.markDelayNoticeDue(later, [first(later)]))
  await told('warn', () =>
    store.report({
      message: later,
      noticesSettled: [{ recipient: first(later), noticeDue: 'delay' }],
      late: [first(later)],
      notices: [entry('', { to: [{ address: 'later@us.example' }], content: [Buffer.from('delayed\r\n')] })],
      warnings: 1,
      warnAt: T0 + 3 * MIN,
    }),
  )
  await told('postpone', () => store.postponeWarning(later, T0 + 4 * MIN))
  const refused = await queued('refused', { leased: true, to: two })
  await told('settle refused', () =>
    store.settle({
      owner: ownerOf(store),
      message: refused,
      recipients: [bounced(first(refused), T0), delivered(recipientId(refused, 1), T0)],
      attempts: [attempt(first(refused), T0, 'bounced'), attempt(recipientId(refused, 1), T0, 'delivered', OK)],
    }),
  )
  await told('notify', () =>
    store.report({
      message: refused,
      noticesSettled: [{ recipient: first(refused), noticeDue: 'failure' }],
      late: [],
      notices: [entry('', { to: [{ address: 'refused@us.example' }], content: [Buffer.from('refused\r\n')] })],
      warnings: 0,
      warnAt: null,
    }),
  )
  await queued('old', { at: T0 - LIFETIME })
  const expired = await told('claim expired', () => store.claimExpired(T0 + 1, 10))
  for (const { message, recipients } of expired) {
    const outcomes = recipients.map(({ id }) => ({ recipient: id, state: 'expired' as const, at: T0, attempts: 0, last: null }))
    await told('expire', () => store.settle({ owner: ownerOf(store), message: message.id, recipients: outcomes, attempts: [] }))
  }
  await told('claim a suspect', () => store.claimSuspect(T0))
  const broken = await queued('broken', { leased: true })
  await told('quarantine', () => store.quarantine(broken, 'its content is lost'))

  // Several calls in one transaction.
  const [one, other] = [entry('one', { leased: true }), entry('other')]
  await told('several', () =>
    Promise.all([store.enqueue(one), store.enqueue(other), store.saveDestination(dead('near.example')), claim(store, T0)]),
  )
  await told('several more', () =>
    Promise.all([
      settleOne(store, one.message.id, delivered(first(one.message.id), T0)),
      store.enqueue(entry('last')),
      store.upkeep.ping(),
    ]),
  )

  // Operators.
  await told('flush', () => operate(store, later, { kind: 'flush', now: T0 + MIN }))
  await told('hold', () => operate(store, later, { kind: 'hold' }))
  await told('release', () => operate(store, later, { kind: 'release' }))
  await told('move', () => store.move([{ recipient: first(later), destination: 'near.example', expiresAt: T0 + MIN }]))
  const newId = store.nextId()
  await told('requeue', () => operate(store, later, { kind: 'requeue', now: T0, newId, expiresAt: T0 + LIFETIME }))
  await told('give up', () => operate(store, newId, { kind: 'expire' }))
  let operation = 0
  await told('begin', async () => void (operation = await store.records.audit.begin(begin('delete'))))
  const round = { operation, at: T0, matched: 1 }
  const removal = { message: fromFile.message.id, operation: { kind: 'delete', now: T0, purge: false } } as const
  await told('round', () => store.operate([removal], round))
  await told('end', () => store.records.audit.end(operation, { state: 'done', at: T0, matched: 1, error: null }))
  await told('restore', () => operate(store, fromFile.message.id, { kind: 'restore' }))
  await told('purge', () => operate(store, fromFile.message.id, { kind: 'delete', now: T0, purge: true }))
  const record = { at: T0, who: 'root', action: 'suspend', arguments: 'far.example', changed: 1 }
  await told('audit', async () => void (await store.records.audit.add(record)))
  await told('add a token', () => store.records.tokens.add(TOKEN))
  await told('use a token', () => store.records.tokens.used('ci', T0))
  await told('remove a token', () => store.records.tokens.remove('ci'))
  await told('add access', () => store.records.access.set(ENTRY))
  await told('remove access', () => store.records.access.remove('sender', 'spam.example'))
  await told('prune', () => store.upkeep.prune({ historyBefore: 0, historyCount: 100, trashBefore: T0 + MIN, requestsBefore: 0 }))
  return answers
}

const dead = (name: string) => ({ name, deadUntil: T0 + MIN, probeInterval: MIN, suspension: null, siteStatus: null })

const idsIn = (requests: readonly DeliveryRequest[]) => requests.flatMap(({ recipients }) => recipients.map(({ id }) => id))

/** Leaves out the ids of messages, which may be others after a break: ids that were reserved in vain are not used. */
function withoutIds(answer: unknown): unknown {
  const text = JSON.stringify(answer, (key, value: unknown) =>
    ['id', 'contentId', 'lease', 'recipient'].includes(key) ? undefined : value,
  )
  return text === undefined ? undefined : (JSON.parse(text) as unknown)
}

/** Rows of the queue, without ids of messages and nodes. */
const ROWS = `
  select 'message' as kind, m.sender, json_build_array(m.placement, m.recipients, m.warnings, m.warn_at, m.forced_expire, m.why,
    coalesce(encode(m.content, 'escape'), (select string_agg(encode(c.data, 'escape'), '' order by c.number) from chunk c
      where c.content_id = m.content_id)))::text as what from message m
  union all
  select 'recipient', m.sender, json_build_array(r.address, r.destination, r.state, r.due_at, r.kept_due_at, r.expires_at, r.steps,
    r.attempts, r.delivery_starts, r.suspect, r.parks, r.notice_due, r.leased_by is null)::text
  from recipient r left join message m on m.id = r.id / 131072
  union all
  select 'attempt', m.sender, json_build_array(a.number, a.at, a.outcome)::text
  from attempt a left join message m on m.id = a.recipient / 131072
  union all
  select 'destination', d.name, json_build_array(d.dead_until, d.probe_interval)::text from destination d
  union all
  select 'audit', a.who, json_build_array(a.action, a.arguments, a.changed, a.matched, a.state)::text from audit a
  union all
  select 'operated', '', o.was from operated o
  union all
  select 'traffic', '', json_build_array(sum(accepted), sum(delivered), sum(deferred), sum(bounced), sum(expired), sum(deleted))::text
  from traffic
  union all
  select 'leftover', '', what from (
    select 'staged' as what from staged union all select 'token' from access_token union all select 'access' from access_entry
    union all select 'file' from maildrop_file union all
    select 'chunk' from chunk where content_id not in (select content_id from message)) leftovers`

/** Rows of the queue as text, in an order that does not depend on ids. */
export async function holds(connection: Connection): Promise<readonly string[]> {
  const rows = await connection.query<{ kind: string; sender: string | null; what: string }>(ROWS)
  const history = await connection.query<{ record: string }>('select record from history')
  const left = history.map(({ record }) => `history ${JSON.stringify(withoutIds(decodeHistory(0, record)))}`)
  return [...rows.map(({ kind, sender, what }) => `${kind} ${sender ?? ''} ${what}`), ...left].toSorted()
}
