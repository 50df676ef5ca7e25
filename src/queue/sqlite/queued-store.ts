/**
 * The QueueStore port over a queue of calls: what both shells of the store core, inline and worker, have in common.
 */
import { freeBytes } from './reserve.ts'
import type { MessageId } from '../message.ts'
import type { NewMessage, QueueStore } from '../store.ts'
import type { Answer, Call, Method } from './calls.ts'
import { cut } from '../chunks.ts'

export interface Shell {
  /** Answered in the order of the calls, once their transaction is committed. */
  submit(call: Call): Promise<unknown>
  close(): Promise<void>
  /** The highest id that was ever used. */
  readonly lastId: MessageId
  /** Null when the queue is kept in memory. */
  readonly directory: string | null
}

export function storeOver(shell: Shell): QueueStore {
  let lastId = shell.lastId
  const call = async <M extends Method>(method: M, ...args: Parameters<QueueStore[M]>): Promise<Answer<M>> =>
    // Call is a union over the methods, and the answer comes from the method of the same name.
    (await shell.submit({ method, args } as unknown as Call)) as Answer<M>
  return {
    nextId: () => ++lastId,
    stage: (body, from, chunks) => call('stage', body, from, cut(chunks)),
    unstage: (body) => call('unstage', body),
    enqueue: (entry) => call('enqueue', inChunks(entry)),
    readBody: (body, index) => call('readBody', body, index),
    claimDue: (claim) => call('claimDue', claim),
    claimSuspect: (now) => call('claimSuspect', now),
    claimExpired: (now, limit, except) => call('claimExpired', now, limit, except),
    giveBack: (recipients) => call('giveBack', recipients),
    settle: (settlement) => call('settle', settlement),
    quarantine: (message, why) => call('quarantine', message, why),
    indebted: (after, limit) => call('indebted', after, limit),
    debtsOf: (message) => call('debtsOf', message),
    claimWarnings: (now, limit) => call('claimWarnings', now, limit),
    postponeWarning: (message, warnAt) => call('postponeWarning', message, warnAt),
    oweDelay: (message, recipients) => call('oweDelay', message, recipients),
    report: (report) => call('report', { ...report, notices: report.notices.map(inChunks) }),
    destinationsDue: () => call('destinationsDue'),
    nextDeadlines: () => call('nextDeadlines'),
    destinations: () => call('destinations'),
    saveDestination: (record) => call('saveDestination', record),
    operate: (operations, auditedAs) => call('operate', operations, auditedAs),
    move: (moves) => call('move', moves),
    audit: (record) => call('audit', record),
    prune: (limits) => call('prune', limits),
    ping: () => call('ping'),
    freeSpace: async () => (shell.directory === null ? Infinity : freeBytes(shell.directory)),
    close: () => shell.close(),
  }
}

const inChunks = (entry: NewMessage): NewMessage => ({ ...entry, content: cut(entry.content) })
