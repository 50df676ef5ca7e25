/**
 * The table of the methods of QueueStore and MoveStore that use the database, one row per method. Derived from the table are the client, the
 * dispatcher in the store's core, the rules for a full disk, and the batches of PostgreSQL. The compiler checks each row against the contract.
 */
import { messageOf, type DeliveryRequest, type MessageId } from '../mail/message.ts'
import type { AuditLog } from './audit-log.ts'
import type { MovableStore, MoveStore } from './move-store.ts'
import type { OutboxStore } from './outbox/outbox-store.ts'
import type { NewMessage, QueueStore } from './queue-store.ts'
import type { ShareCounting } from './share-counts.ts'
import type { StoreUpkeep } from './store-upkeep.ts'
import { performed, recordCall, recordsOver, type SentRecordCall } from './records/records.ts'

/** The ports within a store whose methods have rows of their own. */
type Port = 'outbox' | 'auditLog' | 'shares' | 'upkeep'

type OfPorts = OutboxStore & AuditLog & Omit<ShareCounting, 'onShares'> & StoreUpkeep

/** The methods of a store behind a transport, with those of its ports. All calls of records are one. */
interface Transported extends Omit<MovableStore, 'records' | Port>, OfPorts {
  readonly record: (...call: SentRecordCall) => Promise<unknown>
}

/** Methods that run in a transaction. The excluded methods need no transaction. */
export type Method = Exclude<keyof Transported, 'nextId' | 'leaseTerms' | 'close'>

/** Methods of QueueStore alone. */
export type QueueMethod = Exclude<Method, keyof MoveStore>

export type Arguments = { readonly [M in Method]: Parameters<Transported[M]> }
export type Answers = { readonly [M in Method]: Awaited<ReturnType<Transported[M]>> }

/** A method call with its arguments, in the form that is sent to another thread. */
export type Call<M extends Method = Method> = { [N in M]: { readonly method: N; readonly args: Arguments[N] } }[M]

/** The result of a call. */
export type Outcome<M extends Method = Method> =
  | { readonly ok: true; readonly value: Answers[M] }
  | { readonly ok: false; readonly error: Error }

/** One function per method, run inside a transaction. */
export type Handlers = { readonly [M in Method]: (...args: Arguments[M]) => Answers[M] }

/** The methods of a store that is reached through a transport. */
type Remote = Omit<MovableStore, 'nextId' | 'leaseTerms' | 'shares' | 'close'> & { readonly shares: Omit<ShareCounting, 'onShares'> }

/**
 * Treatment of a method on a full disk:
 * - `needs`: the method adds mail and is refused until there is free space;
 * - `lease`: the method leads to outcomes and is refused while there is no room to record them;
 * - `reserve`: the method records outcomes or removes mail, and may use the reserved disk space;
 * - `neither`: the method is attempted without the reserved space.
 */
type Room = 'needs' | 'lease' | 'reserve' | 'neither'

/** Maps one chunk. `given` is true when the chunk's buffer may be moved instead of copied. */
type ChangeChunk = (chunk: Uint8Array, given: boolean) => Uint8Array

/**
 * Returns the messages that a call may have moved to another queue, or whose live recipients it may have changed. The tally
 * counts them again.
 */
type Changes<M extends Method> = (args: Arguments[M], answer: Answers[M]) => readonly MessageId[]

/** Messages, contents, destinations and other names of a call, which no other call of the batch may have. */
type Keys<M extends Method> = (args: Arguments[M]) => readonly string[]

/**
 * How PostgreSQL is sent the calls of a method:
 * - `read`: the method reads only, and needs no transaction;
 * - `alone`: it takes several round trips, or changes many rows, so that each call has a transaction of its own;
 * - `batched`: it shares a transaction with any other calls;
 * - a function: it shares a transaction with calls that have none of its keys.
 */
type Sending<M extends Method> = 'read' | 'alone' | 'batched' | Keys<M>

interface Traits<M extends Method> {
  readonly room: Room
  readonly sending: Sending<M>
  readonly changes: Changes<M>
  /** Absent when the method takes no chunks. */
  readonly chunks?: {
    /** Returns the chunks in the arguments. */
    readonly in: (args: Arguments[M]) => readonly Uint8Array[]
    /** Applies a function to each chunk in the arguments. */
    readonly map: (args: Arguments[M], change: ChangeChunk) => Arguments[M]
  }
}

type Rows<M extends Method> = { readonly [N in M]: Traits<N> }

const withContent = (entry: NewMessage, change: ChangeChunk): NewMessage => ({
  ...entry,
  content: entry.content.map((chunk) => change(chunk, entry.givesContent === true)),
})

const nothing = (): readonly MessageId[] => []

const leased = (requests: readonly DeliveryRequest[]): readonly MessageId[] => requests.map(({ message }) => message.id)

const OUTBOX = {
  subscribe: { room: 'neither', sending: ([{ name }]) => [`s${name}`], changes: nothing },
  unsubscribe: { room: 'reserve', sending: ([name]) => [`s${name}`], changes: nothing },
  changeSecrets: { room: 'neither', sending: ([name]) => [`s${name}`], changes: nothing },
  configureSubscriptions: { room: 'reserve', sending: 'alone', changes: nothing },
  subscriptions: { room: 'neither', sending: 'read', changes: nothing },
  wantedTypes: { room: 'neither', sending: 'read', changes: nothing },
  numberEvents: { room: 'neither', sending: 'alone', changes: nothing },
  pullEvents: { room: 'neither', sending: 'read', changes: nothing },
  saveProgress: { room: 'reserve', sending: ([name]) => [`s${name}`], changes: nothing },
  parkedDue: { room: 'neither', sending: 'read', changes: nothing },
  settleParked: { room: 'reserve', sending: ([name]) => [`s${name}`], changes: nothing },
  replayEvents: { room: 'neither', sending: 'alone', changes: nothing },
  recordEvents: { room: 'reserve', sending: 'batched', changes: nothing },
  pruneEvents: { room: 'reserve', sending: 'alone', changes: nothing },
} as const satisfies Rows<keyof OutboxStore>

const AUDIT_LOG = {
  audit: { room: 'reserve', sending: 'batched', changes: nothing },
  beginOperation: { room: 'reserve', sending: ([{ at, who }]) => [`b${at} ${who}`], changes: nothing },
  endOperation: { room: 'reserve', sending: 'batched', changes: nothing },
} as const satisfies Rows<keyof AuditLog>

const SHARES = {
  // The counts of a full queue let its mail be refused in time.
  countShares: { room: 'reserve', sending: 'read', changes: nothing },
  sharesElsewhere: { room: 'neither', sending: 'read', changes: nothing },
} as const satisfies Rows<Exclude<keyof ShareCounting, 'onShares'>>

const UPKEEP = {
  saveClock: { room: 'neither', sending: 'read', changes: nothing },
  // The pruning reports each purged message itself (Housekeeping).
  prune: { room: 'reserve', sending: 'alone', changes: nothing },
  verify: { room: 'neither', sending: 'read', changes: nothing },
  // A successful ping means that deliveries can continue.
  ping: { room: 'lease', sending: 'batched', changes: nothing },
  freeSpace: { room: 'neither', sending: 'read', changes: nothing },
} as const satisfies Rows<keyof StoreUpkeep>

const OF_THE_STORE = {
  nextIds: { room: 'neither', sending: 'batched', changes: nothing },
  stage: {
    room: 'needs',
    sending: ([content]) => [`c${content}`],
    changes: nothing,
    chunks: {
      in: ([, , chunks]) => chunks,
      map: ([content, from, chunks, keeps], change) => [content, from, chunks.map((chunk) => change(chunk, keeps !== true))],
    },
  },
  unstage: { room: 'reserve', sending: ([content]) => [`c${content}`], changes: nothing },
  enqueue: {
    room: 'needs',
    sending: ([{ message }]) => [`m${message.id}`, `c${message.contentId}`],
    changes: ([{ message }]) => [message.id],
    chunks: { in: ([{ content }]) => content, map: ([entry], change) => [withContent(entry, change)] },
  },
  maildropFiles: { room: 'neither', sending: 'read', changes: nothing },
  forgetMaildropFiles: { room: 'neither', sending: 'batched', changes: nothing },
  readChunk: { room: 'neither', sending: 'read', changes: nothing },
  claimDue: { room: 'lease', sending: ([{ destination }]) => [`d${destination}`], changes: (_, { requests }) => leased(requests) },
  claimSuspect: {
    room: 'lease',
    sending: () => ['claimSuspect'],
    changes: (_, request) => (request === undefined ? [] : leased([request])),
  },
  claimExpired: { room: 'lease', sending: () => ['claimExpired'], changes: (_, requests) => leased(requests) },
  giveBack: {
    room: 'reserve',
    sending: ([recipients]) => recipients.map((id) => `m${messageOf(id)}`),
    changes: ([recipients]) => recipients.map(messageOf),
  },
  settle: { room: 'reserve', sending: ([{ message }]) => [`m${message}`], changes: ([{ message }]) => [message] },
  quarantine: { room: 'reserve', sending: 'alone', changes: ([message]) => [message] },
  messagesWithNoticesDue: { room: 'neither', sending: 'read', changes: nothing },
  noticesDueOf: { room: 'neither', sending: 'read', changes: nothing },
  claimWarnings: { room: 'neither', sending: 'read', changes: nothing },
  postponeWarning: { room: 'reserve', sending: ([message]) => [`m${message}`], changes: nothing },
  markDelayNoticeDue: { room: 'neither', sending: ([message]) => [`m${message}`], changes: nothing },
  report: {
    room: 'reserve',
    sending: 'alone',
    changes: ([{ message, notices }]) => [message, ...notices.map((notice) => notice.message.id)],
    chunks: {
      in: ([{ notices }]) => notices.flatMap(({ content }) => content),
      map: ([report], change) => [{ ...report, notices: report.notices.map((notice) => withContent(notice, change)) }],
    },
  },
  endSchedules: { room: 'reserve', sending: 'alone', changes: (_, { ended }) => ended },
  scheduledMail: { room: 'neither', sending: 'read', changes: nothing },
  destinationsDue: { room: 'neither', sending: 'read', changes: nothing },
  nextDeadlines: { room: 'neither', sending: 'read', changes: nothing },
  destinations: { room: 'neither', sending: 'read', changes: nothing },
  saveDestination: { room: 'neither', sending: ([{ name }]) => [`n${name}`], changes: nothing },
  joinProvider: { room: 'neither', sending: 'read', changes: nothing },
  operate: {
    room: 'reserve',
    sending: 'alone',
    changes: ([operations]) =>
      operations.flatMap(({ message, operation }) => (operation.kind === 'requeue' ? [message, operation.newId] : [message])),
  },
  move: { room: 'neither', sending: 'alone', changes: ([moves]) => moves.map(({ recipient }) => messageOf(recipient)) },
  tally: { room: 'neither', sending: 'read', changes: nothing },
  // Each call of records has its own room.
  record: { room: 'neither', sending: (call) => [recordCall(call).key(...call[2])], changes: nothing },
  moveState: { room: 'neither', sending: 'read', changes: nothing },
  claimMoves: { room: 'neither', sending: 'alone', changes: nothing },
  // A move away makes room, also on a full disk.
  beginMove: { room: 'reserve', sending: 'alone', changes: (_, { messages }) => messages.map(({ message }) => message.id) },
  leaving: { room: 'neither', sending: 'alone', changes: nothing },
  finishMove: { room: 'reserve', sending: 'alone', changes: nothing },
  undoMove: { room: 'reserve', sending: 'alone', changes: ([messages]) => messages },
  historyAfter: { room: 'neither', sending: 'alone', changes: nothing },
  markMoved: { room: 'reserve', sending: 'alone', changes: nothing },
  keepIds: { room: 'neither', sending: 'alone', changes: nothing },
  takeMoved: {
    room: 'needs',
    sending: 'alone',
    changes: nothing,
    chunks: {
      in: ([, arrivals]) => arrivals.flatMap(({ content }) => content),
      map: ([source, arrivals, destinations], change) => [
        source,
        arrivals.map((arrival) => ({ ...arrival, content: arrival.content.map((chunk) => change(chunk, true)) })),
        destinations,
      ],
    },
  },
  originsOf: { room: 'neither', sending: 'alone', changes: nothing },
  admitMoved: { room: 'reserve', sending: 'alone', changes: (_, { messages }) => messages },
  takeRecords: { room: 'needs', sending: 'alone', changes: nothing },
  recordsTaken: { room: 'neither', sending: 'read', changes: nothing },
} as const satisfies Rows<Exclude<Method, keyof OfPorts>>

const PORTS: Readonly<Record<Port, object>> = { outbox: OUTBOX, auditLog: AUDIT_LOG, shares: SHARES, upkeep: UPKEEP }

const ROWS = { ...OF_THE_STORE, ...OUTBOX, ...AUDIT_LOG, ...SHARES, ...UPKEEP }

export const METHODS: Rows<Method> = ROWS

/** Methods that read only. */
export type ReadMethod = { [M in Method]: (typeof ROWS)[M]['sending'] extends 'read' ? M : never }[Method]

const isPort = (name: string): name is Port => Object.hasOwn(PORTS, name)

/** Whether a member of a store is a method of the table. */
const isMethod = (name: string): name is Method => Object.hasOwn(METHODS, name)

type MethodsIn<P> = P extends unknown ? Pick<P, Extract<keyof P, Method>> : never
type All<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer A) => void ? A : never

/** Composes the methods of several parts of a store. Throws when two parts have the same method. */
export function methodsOf<P extends readonly object[]>(...parts: P): All<MethodsIn<P[number]>> {
  const methods = parts.flatMap((part) =>
    Object.keys(METHODS).flatMap((name) => {
      const member: unknown = Reflect.get(part, name)
      return typeof member === 'function' ? [[name, member.bind(part) as unknown] as const] : []
    }),
  )
  const composed = Object.fromEntries(methods)
  if (Object.keys(composed).length < methods.length) throw new Error('two parts of the store have the same method')
  return composed as All<MethodsIn<P[number]>>
}

/** Runs a call, then calls `changed` for each message that the call may have changed. */
export function dispatch<M extends Method>(handlers: Handlers, call: Call<M>, changed: (message: MessageId) => void): Answers[M] {
  const answer: Answers[M] = handlers[call.method](...call.args)
  for (const message of METHODS[call.method].changes(call.args, answer)) changed(message)
  return answer
}

/** Creates all methods, each of which submits its call to the transport. */
export function remoteMethods(submit: <M extends Method>(call: Call<M>) => Promise<Answers[M]>): Remote {
  const caller =
    <M extends Method>(method: M) =>
    (...args: Arguments[M]): Promise<Answers[M]> =>
      submit<M>({ method, args })
  const callers = (rows: object) => Object.fromEntries((Object.keys(rows) as Method[]).map((method) => [method, caller(method)]))
  const { record, ...methods } = callers(OF_THE_STORE) as unknown as Omit<Transported, keyof OfPorts>
  const ports: object = Object.fromEntries(Object.entries(PORTS).map(([port, rows]) => [port, callers(rows)]))
  return { ...methods, ...(ports as Pick<Remote, Port>), records: recordsOver(record) }
}

/** Treatment of a call on a full disk. */
export const roomOf = (call: Call): Room =>
  call.method === 'record' ? (recordCall(call.args).room ?? 'neither') : METHODS[call.method].room

/** A store whose calls, and those of its ports, go through `around`; the calls of records as the method `record`. */
export function intercepted<S extends object>(
  store: S,
  around: (method: QueueMethod, args: readonly unknown[], perform: () => Promise<unknown>) => Promise<unknown>,
): S {
  const records = recordsOver((...call) => around('record', call, () => performed(store as Pick<QueueStore, 'records'>, call)))
  const within = <P extends object>(port: P): P =>
    new Proxy(port, {
      get: (target, name: keyof P & string) => {
        if (name === 'records') return records
        if (isPort(name)) return within(target[name] as object)
        const method = target[name] as (...args: unknown[]) => Promise<unknown>
        if (!isMethod(name)) return method.bind(target)
        return (...args: unknown[]) => around(name as QueueMethod, args, () => method.apply(target, args))
      },
    })
  return within(store)
}

/** Applies a function to each chunk in the arguments of a call. */
export function mapChunks<M extends Method>(call: Call<M>, change: ChangeChunk): Call<M> {
  const { chunks } = METHODS[call.method]
  return chunks === undefined ? call : { method: call.method, args: chunks.map(call.args, change) }
}

const NO_CHUNKS: readonly Uint8Array[] = []

/** Returns the chunks in the arguments of a call. */
export function chunksOf<M extends Method>(call: Call<M>): readonly Uint8Array[] {
  return METHODS[call.method].chunks?.in(call.args) ?? NO_CHUNKS
}

/** Bytes of content in the arguments of a call. */
export function contentBytes(call: Call): number {
  let bytes = 0
  for (const chunk of chunksOf(call)) bytes += chunk.byteLength
  return bytes
}

/** A call that has no answer yet. */
export interface PendingCall<M extends Method = Method> {
  readonly call: Call<M>
  settle(outcome: Outcome<M>): void
}

/** Turns a call into a promise. `keep` receives the pending call, whose `settle` resolves or rejects the promise. */
export function pending<M extends Method>(call: Call<M>, keep: (waiting: PendingCall) => void): Promise<Answers[M]> {
  return new Promise((resolve, reject) => {
    const waiting: PendingCall<M> = {
      call,
      settle: (outcome) => {
        if (outcome.ok) resolve(outcome.value)
        else reject(outcome.error)
      },
    }
    keep(waiting)
  })
}
