/**
 * The table of the QueueReader methods. Two readers are derived from it: one that runs the engine in the same thread, and one
 * that runs it in another.
 */
import type { QueueReader } from './queue-reader.ts'
import { recordsOver, type SentRecordCall } from './records/records.ts'

/** The methods of a reader behind a transport. All calls of records are one. */
interface Transported extends Omit<QueueReader, 'records' | 'close'> {
  readonly record: (...call: SentRecordCall) => Promise<unknown>
}

export type ReaderMethod = keyof Transported

type Arguments = { readonly [M in ReaderMethod]: Parameters<Transported[M]> }
type Answers = { readonly [M in ReaderMethod]: Awaited<ReturnType<Transported[M]>> }

/** A method call with its arguments, in the form that is sent to another thread. */
export type ReaderCall<M extends ReaderMethod = ReaderMethod> = { [N in M]: { readonly method: N; readonly args: Arguments[N] } }[M]

/** The methods of a reader as synchronous functions. */
type Handlers = { readonly [M in ReaderMethod]: (...args: Arguments[M]) => Answers[M] }

export interface ReaderEngine extends Handlers {
  close(): void
}

const METHODS: { readonly [M in ReaderMethod]: true } = {
  list: true,
  find: true,
  named: true,
  withEnvid: true,
  sliceEnd: true,
  lastId: true,
  survey: true,
  expiring: true,
  details: true,
  readChunk: true,
  destinationNames: true,
  destinationLoads: true,
  destinationLoad: true,
  scheduledAt: true,
  destinationRecords: true,
  clockRecord: true,
  placedBy: true,
  allSubscriptions: true,
  parkedEvents: true,
  eventsAfter: true,
  ages: true,
  shareLoads: true,
  counts: true,
  causes: true,
  departed: true,
  search: true,
  trashCount: true,
  traffic: true,
  firstTraffic: true,
  record: true,
}

/** Runs a call on an engine. */
export function answerOf<M extends ReaderMethod>(engine: Handlers, { method, args }: ReaderCall<M>): Answers[M] {
  return engine[method](...args)
}

/** Creates a reader that submits each of its calls. */
export function createReader(submit: <M extends ReaderMethod>(call: ReaderCall<M>) => Promise<Answers[M]>, close: () => Promise<void>) {
  const caller =
    <M extends ReaderMethod>(method: M) =>
    (...args: Arguments[M]): Promise<Answers[M]> =>
      submit<M>({ method, args })
  const methods = Object.fromEntries((Object.keys(METHODS) as ReaderMethod[]).map((method) => [method, caller(method)]))
  const { record, ...rest } = methods as unknown as Transported
  return { ...rest, records: recordsOver(record), close } satisfies QueueReader
}

/** Creates a reader over an engine in the same thread. It answers in the same turn of the event loop. */
export const directReader = (engine: ReaderEngine): QueueReader =>
  createReader(
    async (call) => answerOf(engine, call),
    async () => engine.close(),
  )
