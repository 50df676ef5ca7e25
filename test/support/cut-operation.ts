/** Deletes a backlog over HTTP, with a cancellation or SIGKILL on the way; used by the short and the long test. */
import { expect } from 'vitest'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openStore } from '../../src/store/sqlite/open-store.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { DAY } from '../../src/system/clock.ts'
import { ApiProgram, type Operation } from './api-program.ts'
import { fillBacklog } from './backlog.ts'
import type { KillableRelay } from './killable-relay.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

const DELETE_ALL = { operation: 'delete', selection: { kind: 'filter', filter: {} }, all: true }

/** A backlog of deferred mail below a daemon, with a program that uses its API. */
export class DeletedBacklog {
  readonly lab: KillableRelay
  readonly program: ApiProgram
  readonly #reader: QueueReader
  readonly #messages: number

  private constructor(
    lab: KillableRelay,
    facts: { readonly program: ApiProgram; readonly reader: QueueReader; readonly messages: number },
  ) {
    this.lab = lab
    this.program = facts.program
    this.#reader = facts.reader
    this.#messages = facts.messages
  }

  static async open(lab: KillableRelay, messages: number): Promise<DeletedBacklog> {
    await lab.open(0)
    const { store, close } = await openStore(lab.queueDirectory, { threads: false, create: true })
    await fillBacklog(store, { messages, now: Date.now(), destinationOf: () => lab.nextHop, dueIn: () => DAY, bytes: 100 })
    await close()
    await lab.startDaemon()
    const program = await ApiProgram.of(lab.queueDirectory)
    return new DeletedBacklog(lab, { program, reader: openQueueReader(lab.queueDirectory), messages })
  }

  async close(): Promise<void> {
    await this.#reader.close()
  }

  /** Queue ids in a queue. */
  async ids(queue: 'deferred' | 'trash'): Promise<readonly number[]> {
    return (await this.#reader.find({ ...ANY_MESSAGE, queue }, { after: 0, limit: this.#messages + 1 })).map(({ id }) => id)
  }

  state(id: number): Promise<Operation> {
    return this.program.operation('GET', `/operations/${id}`)
  }

  /** Id of the last record of the audit log. */
  async newest(): Promise<number> {
    const { json } = await this.program.send('GET', '/audit?limit=1')
    return (json['records'] as readonly { readonly id: number }[])[0]?.id ?? 0
  }

  /** Number of messages that an operation has changed, as committed. */
  async changed(id: number): Promise<number> {
    return (await this.#reader.records.audit.one(id))?.changed ?? 0
  }

  /** The end of an operation, with its progress on the way. */
  async end(id: number): Promise<{ readonly last: Operation; readonly progress: readonly number[] }> {
    const progress: number[] = []
    for (;;) {
      const last = await this.state(id)
      progress.push(last.changed)
      if (last.state !== 'running') return { last, progress }
      await pause(50)
    }
  }

  /** Undoes an operation, and expects that exactly its messages are in the queue again. */
  async undo({ id, changed }: Operation, before: readonly number[]): Promise<void> {
    const { id: undo } = await this.program.operation('POST', `/operations/${id}/undo`)
    const { last } = await this.end(undo)
    expect(last).toMatchObject({ operation: 'restore', state: 'done', changed, matched: changed })
    expect(await this.state(id)).toMatchObject({ undone_by: undo })
    expect(await this.ids('deferred')).toEqual(before)
  }
}

/** Kills the daemon during a delete, after `cutAt` messages, and expects exact counts and an exact undo. */
export async function cutOperation(
  lab: KillableRelay,
  { messages, cutAt }: { readonly messages: number; readonly cutAt: number },
): Promise<void> {
  const backlog = await DeletedBacklog.open(lab, messages)
  try {
    // One message is in the trash already, and stays there.
    const [apart = 0, ...others] = await backlog.ids('deferred')
    const first = { ...DELETE_ALL, selection: { ...DELETE_ALL.selection, limit: 1 } }
    const { id } = await backlog.program.operation('POST', '/operations', first)
    // While mail is processed, operations are slower.
    expect(await lab.sendOne()).toMatch(/^250 /)
    const cut = backlog.program.operation('POST', '/operations', DELETE_ALL).catch(() => null)
    while ((await backlog.changed(id + 1)) < cutAt) await pause(5)
    await lab.die(0)
    const answered = await cut
    if (answered !== null) expect(answered).toMatchObject({ status: 202, state: 'running' })
    await lab.startDaemon()
    const deleted = (await backlog.ids('trash')).length - 1
    expect(deleted).toBeGreaterThanOrEqual(cutAt)
    expect(deleted).toBeLessThan(messages - 1)
    const state = await backlog.state(id + 1)
    expect(state).toMatchObject({ state: 'failed', changed: deleted, error: expect.stringContaining('ended') as string })
    const { json } = await backlog.program.send('GET', '/audit?limit=1')
    expect(json['records']).toMatchObject([{ id: id + 1, action: 'delete', changed: deleted, state: 'failed' }])
    await backlog.undo(state, others)
    expect(await backlog.ids('trash')).toEqual([apart])
  } finally {
    await backlog.close()
  }
}

/** Deletes a backlog by a plan, cancels that at a share of it, and expects progress, exact counts and an exact undo. */
export async function cancelledOperation(
  lab: KillableRelay,
  { messages, cancelAt }: { readonly messages: number; readonly cancelAt: number },
): Promise<void> {
  const backlog = await DeletedBacklog.open(lab, messages)
  try {
    const before = await backlog.ids('deferred')
    const { json } = await backlog.program.send('POST', '/operations', { ...DELETE_ALL, dry_run: true })
    const plan = json['plan'] as { readonly token: string; readonly matched: number }
    expect(plan.matched).toBe(messages)
    // While mail is processed, operations are slower.
    expect(await lab.sendOne()).toMatch(/^250 /)
    // The answer comes after two seconds, or at the end; a fast machine has passed `cancelAt` by then.
    const answers: Operation[] = []
    const id = (await backlog.newest()) + 1
    const answer = backlog.program.operation('POST', '/operations', { plan: plan.token }).then((begun) => void answers.push(begun))
    const progress = [0]
    while (answers.every(({ state }) => state === 'running') && (progress.at(-1) ?? 0) < cancelAt) {
      progress.push(await backlog.changed(id))
      await pause(5)
    }
    expect(await backlog.state(id)).toMatchObject({ state: 'running' })
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    expect(new Set(progress).size).toBeGreaterThan(5)
    await backlog.program.operation('DELETE', `/operations/${id}`)
    await answer
    expect(answers).toMatchObject([{ id }])
    const { last } = await backlog.end(id)
    const deleted = await backlog.ids('trash')
    expect(last).toMatchObject({ state: 'cancelled', changed: deleted.length })
    expect(deleted.length).toBeLessThan(messages / 2)
    expect(deleted).toEqual(before.slice(0, deleted.length))
    await backlog.undo(last, before)
    expect(await backlog.ids('trash')).toEqual([])
  } finally {
    await backlog.close()
  }
}
