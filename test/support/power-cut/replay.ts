/** Power cuts at all moments of a recorded run: each disk that a cut may leave is opened and compared with the acknowledged states. */
import { existsSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { QueueReader } from '../../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { openStoreReadOnly } from '../../../src/store/sqlite/open-store.ts'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import { seededRandom } from '../../../src/system/random.ts'
import { contentOf } from '../../conformance/mail.ts'
import { CrashDisk, type Image } from './crash-disk.ts'
import { stateOf } from './queue-state.ts'
import { recordWriter, type DiskCall } from './recording.ts'

export interface CutReport {
  readonly states: number
  /** States in which the queue could not be opened, or is damaged. */
  readonly corrupt: number
  /** States that lack an acknowledged change, or contain a part of one. */
  readonly lost: number
  /** The first few findings. */
  readonly findings: readonly string[]
}

/** States between two full checks of the file, which read all its pages. */
const CHECKED_EVERY = 20
/** Size of the reserved space, which would otherwise be written for each state. */
const RESERVE = 8 * 1024 * 1024

/** Opens `states` disks, spread over the calls of a run; `fault` as in recordWriter. */
export async function powerCuts({
  states,
  seed,
  fault = '',
}: {
  readonly states: number
  readonly seed: number
  readonly fault?: string
}): Promise<CutReport> {
  const calls = recordWriter(seed, fault)
  const chance = seededRandom(seed).stream('cuts')
  const replay = new Replay(calls)
  try {
    const isMark = ({ kind }: DiskCall): boolean => kind === 'written' || kind === 'durable'
    const perMoment = states / calls.filter((call) => !isMark(call)).length
    const disk = new CrashDisk()
    let wanted = 0
    for (const call of calls) {
      disk.apply(call)
      if (call.kind === 'written') replay.written++
      if (call.kind === 'durable') replay.durable = call.state
      wanted += isMark(call) ? 0 : perMoment
      for (; replay.states < wanted - 0.5;) await replay.open(disk.cut(chance))
    }
    return replay.report()
  } finally {
    replay.close()
  }
}

class Replay {
  /** Numbers of the last state that was acknowledged, and of the last one that was written. */
  durable = -1
  written = -1
  states = 0
  /** All states of the run, after the empty one of number -1. */
  readonly #written: readonly string[]
  readonly #directory: string
  readonly #findings: string[] = []
  #corrupt = 0
  #lost = 0

  constructor(calls: readonly DiskCall[]) {
    this.#written = calls.flatMap((call) => (call.kind === 'written' ? [call.state] : []))
    // Nothing that is written here has to survive: the memory file system saves the syncs.
    this.#directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'deferd-cut-'))
    writeFileSync(join(this.#directory, 'reserve'), '')
    truncateSync(join(this.#directory, 'reserve'), RESERVE)
  }

  async open(image: Image): Promise<void> {
    this.states++
    for (const name of readdirSync(this.#directory)) if (name !== 'reserve') rmSync(join(this.#directory, name))
    for (const [name, bytes] of image) writeFileSync(join(this.#directory, name), bytes)
    try {
      const { store, reader } = await openInlineStore({ directory: this.#directory })
      try {
        await this.#compare(store, reader)
      } finally {
        await store.close()
      }
      if (this.states % CHECKED_EVERY === 0) this.#check()
    } catch (error) {
      this.#corrupt++
      this.#note(`cannot be opened: ${String(error)}`)
    }
  }

  /** The state is the acknowledged one, or one that was written after it, or the one that the interrupted call was to make. */
  async #compare(store: QueueStore, reader: QueueReader): Promise<void> {
    const listed = await reader.list(ANY_MESSAGE, { after: 0, limit: 10_000 })
    const state = JSON.stringify(stateOf({ list: () => listed }))
    const allowed = this.#written.slice(Math.max(0, this.durable), this.written + 2)
    if (this.durable < 0) allowed.push('[]')
    // A step of the writer may be two commits, such as a claim and its settlement: both are listed the same.
    if (!allowed.includes(state)) {
      this.#lost++
      this.#note(`${state.slice(0, 300)} instead of ${allowed.map((one) => one.slice(0, 300)).join(' or ')}`)
    }
    for (const { message } of listed) {
      const content = await contentOf(store, message.contentId)
      if (content.length === message.size) continue
      this.#lost++
      this.#note(`message ${message.id} has ${content.length} bytes of ${message.size}`)
    }
  }

  #check(): void {
    const queue = openStoreReadOnly(this.#directory)
    const defects = queue.defects()
    void queue.close()
    if (defects.length === 0) return
    this.#corrupt++
    this.#note(defects.join('; '))
  }

  #note(text: string): void {
    if (this.#findings.length < 5) this.#findings.push(`state ${this.states}: ${text}`)
  }

  report(): CutReport {
    return { states: this.states, corrupt: this.#corrupt, lost: this.#lost, findings: this.#findings }
  }

  close(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
