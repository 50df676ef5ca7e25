/** The table of the methods by how their calls are sent, one row per method. */
import { messageOf } from '../../../mail/message.ts'
import type { Arguments, Call, Method } from '../../methods.ts'
import { recordCall } from '../../records/records.ts'

/** Messages, contents, destinations and other names of a call, which no other call of the batch may have. */
type Keys<M extends Method> = (args: Arguments[M]) => readonly string[]

/**
 * How the calls of a method are sent:
 * - `read`: the method reads only, and needs no transaction;
 * - `alone`: it takes several round trips, or changes many rows, so that each call has a transaction of its own;
 * - `batched`: it shares a transaction with any other calls;
 * - a function: it shares a transaction with calls that have none of its keys.
 */
type Sending<M extends Method> = 'read' | 'alone' | 'batched' | Keys<M>

const SENDING = {
  nextIds: 'batched',
  stage: ([content]) => [`c${content}`],
  unstage: ([content]) => [`c${content}`],
  enqueue: ([{ message }]) => [`m${message.id}`, `c${message.contentId}`],
  maildropFiles: 'read',
  forgetMaildropFiles: 'batched',
  readChunk: 'read',
  claimDue: ([{ destination }]) => [`d${destination}`],
  claimSuspect: () => ['claimSuspect'],
  claimExpired: () => ['claimExpired'],
  giveBack: ([recipients]) => recipients.map((id) => `m${messageOf(id)}`),
  settle: ([{ message }]) => [`m${message}`],
  quarantine: 'alone',
  messagesWithNoticesDue: 'read',
  noticesDueOf: 'read',
  claimWarnings: 'read',
  postponeWarning: ([message]) => [`m${message}`],
  markDelayNoticeDue: ([message]) => [`m${message}`],
  report: 'alone',
  destinationsDue: 'read',
  nextDeadlines: 'read',
  destinations: 'read',
  saveDestination: ([{ name }]) => [`n${name}`],
  joinProvider: 'read',
  operate: 'alone',
  move: 'alone',
  tally: 'read',
  subscribe: ([{ name }]) => [`s${name}`],
  unsubscribe: ([name]) => [`s${name}`],
  changeSecrets: ([name]) => [`s${name}`],
  configureSubscriptions: 'alone',
  subscriptions: 'read',
  wantedTypes: 'read',
  numberEvents: 'alone',
  pullEvents: 'read',
  saveProgress: ([name]) => [`s${name}`],
  parkedDue: 'read',
  settleParked: ([name]) => [`s${name}`],
  replayEvents: 'alone',
  recordEvents: 'batched',
  pruneEvents: 'alone',
  audit: 'batched',
  beginOperation: ([{ at, who }]) => [`b${at} ${who}`],
  endOperation: 'batched',
  record: (call) => [recordCall(call).key(...call[2])],
  saveClock: 'read',
  prune: 'alone',
  verify: 'read',
  ping: 'batched',
  freeSpace: 'read',
  moveState: 'read',
  claimMoves: 'alone',
  beginMove: 'alone',
  leaving: 'alone',
  finishMove: 'alone',
  undoMove: 'alone',
  historyAfter: 'alone',
  markMoved: 'alone',
  keepIds: 'alone',
  takeMoved: 'alone',
  originsOf: 'alone',
  admitMoved: 'alone',
  takeRecords: 'alone',
  recordsTaken: 'read',
} as const satisfies { readonly [M in Method]: Sending<M> }

/** Methods that read only. */
export type ReadMethod = { [M in Method]: (typeof SENDING)[M] extends 'read' ? M : never }[Method]

export type WriteMethod = Exclude<Method, ReadMethod>

export type WriteCall = Call<WriteMethod>

const NO_KEYS: readonly string[] = []

const sendingOf = <M extends Method>(method: M): Sending<M> => (SENDING as { readonly [N in Method]: Sending<N> })[method]

export const isAlone = ({ method }: WriteCall): boolean => SENDING[method] === 'alone'

/** Names of a call, which no other call of its batch may have. */
export function keysOf<M extends WriteMethod>({ method, args }: Call<M>): readonly string[] {
  const sending = sendingOf(method)
  return typeof sending === 'function' ? sending(args) : NO_KEYS
}
