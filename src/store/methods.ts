/**
 * The table of the methods of QueueStore and MoveStore that use the database: the rows beside their contracts. Derived from the table are the client, the
 * dispatcher in the store's core, the rules for a full disk, and the batches of PostgreSQL. The compiler checks each row against the contract.
 */
import type { MessageId } from '../mail/message.ts'
import { nothing, type ChangeChunk, type MethodRows, type Room, type Traits } from './method-traits.ts'
import { DEPARTED_METHODS, type DepartedMail } from './returned-mail.ts'
import { MOVE_METHODS, type MovableStore, type MoveStore } from './move-store.ts'
import { OUTBOX_METHODS, type OutboxStore } from './outbox-store.ts'
import { STORE_METHODS, type QueueStore } from './queue-store.ts'
import type { Settlement } from './recorded-outcomes.ts'
import { SHARE_METHODS, type ShareCounting } from './share-counts.ts'
import { UPKEEP_METHODS, type StoreUpkeep } from './store-upkeep.ts'
import { performed, recordCall, recordsOver, type SentRecordCall } from './records/records.ts'

/** The ports within a store whose methods have rows of their own. */
type Port = 'outbox' | 'shares' | 'upkeep' | 'departed'

type OfPorts = OutboxStore & Omit<ShareCounting, 'onShares'> & StoreUpkeep & DepartedMail

/** The methods of a store behind a transport, with those of its ports. All calls of records are one. */
interface Transported extends Omit<MovableStore, 'records' | Port>, OfPorts {
  readonly record: (...call: SentRecordCall) => Promise<unknown>
}

/** Methods that run in a transaction. The excluded methods need no transaction. */
export type Method = Exclude<keyof Transported, 'nextId' | 'leaseTerms' | 'close'>

/** Methods of QueueStore alone. */
export type QueueMethod = Exclude<Method, keyof MoveStore>

/** Arguments of the calls. A function is none of them, because it cannot be sent to another thread. */
export type Arguments = { readonly [M in Method]: M extends 'settle' ? [settlement: Settlement] : Parameters<Transported[M]> }
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

const OF_THE_STORE = {
  ...STORE_METHODS,
  // Each call of records has its own room.
  record: { room: 'neither', sending: (call) => [recordCall(call).key(...call[2])], changes: nothing },
  ...MOVE_METHODS,
} as const satisfies MethodRows<Omit<Transported, 'nextId' | 'leaseTerms' | 'close' | keyof OfPorts>>

const PORTS: Readonly<Record<Port, object>> = {
  outbox: OUTBOX_METHODS,
  shares: SHARE_METHODS,
  upkeep: UPKEEP_METHODS,
  departed: DEPARTED_METHODS,
}

const ROWS = { ...OF_THE_STORE, ...OUTBOX_METHODS, ...SHARE_METHODS, ...UPKEEP_METHODS, ...DEPARTED_METHODS }

export const METHODS: { readonly [M in Method]: Traits<Arguments[M], Answers[M]> } = ROWS

/** Methods without a transaction of the writing session. */
export type DirectMethod = { [M in Method]: (typeof ROWS)[M]['sending'] extends 'direct' ? M : never }[Method]

export const isDirect = (method: Method): boolean => METHODS[method].sending === 'direct'

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
export function remoteMethods(submit: <M extends Method>(call: Call<M>, written?: () => void) => Promise<Answers[M]>): Remote {
  const caller =
    <M extends Method>(method: M) =>
    (...args: Arguments[M]): Promise<Answers[M]> =>
      submit<M>({ method, args })
  const callers = (rows: object) => Object.fromEntries((Object.keys(rows) as Method[]).map((method) => [method, caller(method)]))
  const { record, ...methods } = callers(OF_THE_STORE) as unknown as Omit<Transported, keyof OfPorts>
  const ports: object = Object.fromEntries(Object.entries(PORTS).map(([port, rows]) => [port, callers(rows)]))
  const settle: Remote['settle'] = (settlement, written) => submit<'settle'>({ method: 'settle', args: [settlement] }, written)
  return { ...methods, settle, ...(ports as Pick<Remote, Port>), records: recordsOver(record) }
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
  /** Called when the change is written and not yet durable (QueueStore.settle). */
  readonly written?: (() => void) | undefined
  settle(outcome: Outcome<M>): void
}

/** Turns a call into a promise. `keep` receives the pending call, whose `settle` resolves or rejects the promise. */
export function pending<M extends Method>(call: Call<M>, keep: (waiting: PendingCall) => void, written?: () => void): Promise<Answers[M]> {
  return new Promise((resolve, reject) => {
    const waiting: PendingCall<M> = {
      call,
      written,
      settle: (outcome) => {
        if (outcome.ok) resolve(outcome.value)
        else reject(outcome.error)
      },
    }
    keep(waiting)
  })
}
