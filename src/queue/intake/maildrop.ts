/**
 * Moves messages from the maildrop to the queue. A key of the file is committed with the message, and the file is removed
 * afterwards: a crash in between does not queue the message twice. A message that cannot be accepted is returned to its sender. A
 * file that is not a valid submission is moved to a folder that only the queue's owner can write to.
 *
 * No file can delay the others: an error concerns one file, and the daemon does other work between batches of files.
 */
import { constants } from 'node:fs'
import type { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { RejectedSubmission } from '../../bounce/rejected-submission.ts'
import { formatReply, maskControls, type SmtpReply } from '../../mail/smtp-reply.ts'
import { StoreUnavailable, type QueueStore } from '../../store/queue-store.ts'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { sleep, type Clock, type Duration } from '../../system/clock.ts'
import type { Events } from '../../telemetry/events.ts'
import type { Acceptor } from './acceptor.ts'
import { WRITE_ERROR } from './intake.ts'
import {
  entryNames,
  isMaildropKey,
  isStale,
  maildropFolder,
  openEntry,
  pathOf,
  refusedFolder,
  type EntryFacts,
  type EntryName,
  type MaildropFile,
  type MaildropFiles,
} from './maildrop-reader.ts'
import { InvalidFile } from './maildrop-file.ts'
import { MaildropPasses, type PassResult } from './maildrop-passes.ts'
import { prepareMaildrop } from './maildrop-writer.ts'
import { TOO_BIG } from './message-receiver.ts'
import type { Origin } from './share-key.ts'
import { SubmissionOutcomes } from './submission-outcomes.ts'

/** Number of entries read without a pause. */
const BATCH = 500
/** Pause between two batches in ms, for other work of the daemon. */
const PAUSE: Duration = 50
/** Maximum number of entries read concurrently. They share commits. */
const AT_ONCE = 8
/** Maximum number of characters of a file name in the log. */
const SHOWN_NAME = 100

export interface MaildropDeps {
  readonly queueDirectory: string
  readonly files: MaildropFiles & { readonly mkdir: typeof mkdir }
  readonly acceptor: Pick<Acceptor, 'accept'>
  /** Reply to mail of this size; undefined when the mail can be accepted now. */
  readonly refusal: (size: number, origin: Origin, isHeld: boolean) => Promise<SmtpReply | undefined> | SmtpReply | undefined
  /** Message size limit in bytes; 0 for no limit. */
  readonly sizeLimit: () => number
  /** Queues a notice to the sender, together with the key of the file. */
  readonly returnToSender: (rejected: RejectedSubmission) => Promise<void>
  readonly store: Pick<QueueStore, 'maildropFiles' | 'forgetMaildropFiles'>
  readonly clock: Clock
  readonly events: Events
}

/**
 * Place of an entry among those that are opened concurrently. Its message is accepted after the contents of earlier ones are read, so that
 * queue ids have the order of the submissions, and a limit of the queue refuses the last ones.
 */
interface Turn {
  readonly begun: Promise<unknown>
  readonly end: () => void
}

interface ListedEntry {
  readonly name: EntryName
  readonly turn: Turn
}

/** One pass over the folder. */
interface Pass {
  taken: number
  left: number
  stale: number
  /** Keys of files that are still in the maildrop although their message is queued. */
  readonly remaining: Set<string>
  /** Reason why the pass ended early; null when it was complete. */
  stopped: string | null
}

export class Maildrop {
  /** Outcomes of the last files. */
  readonly outcomes = new SubmissionOutcomes()
  readonly #deps: MaildropDeps
  readonly #folder: string
  readonly #refused: string
  readonly #passes: MaildropPasses
  /** Keys of files whose message is queued; null until they are read from the store. */
  #queued: Set<string> | null = null
  #isPrepared = false
  #stale = 0
  /** Reason why the last pass ended early; null when it was complete. */
  #stopped: string | null = null
  #refusals = 0

  constructor(deps: MaildropDeps) {
    this.#deps = deps
    this.#folder = maildropFolder(deps.queueDirectory)
    this.#refused = refusedFolder(deps.queueDirectory)
    this.#passes = new MaildropPasses(deps.clock, () => this.#pass())
  }

  /** Creates the folder. A failure is logged, and the next pass tries again. */
  async prepare(): Promise<void> {
    try {
      await prepareMaildrop(this.#deps.queueDirectory)
      this.#isPrepared = true
    } catch (error) {
      this.#note('warning', `cannot be prepared: ${errorMessage(error)}`)
    }
  }

  /** Starts passes over the folder: once a minute, and after `wake`. They continue until `stop`. */
  start(): void {
    this.#passes.start()
  }

  /** Announces that files may have been submitted. */
  wake(): void {
    this.#passes.wake()
  }

  /** Stops the passes. Resolves when the files that are being read are queued or left. */
  async stop(): Promise<void> {
    await this.#passes.stop()
  }

  /** Makes one pass over the folder and resolves with the number of queued messages. Errors are logged. */
  async takeIn(): Promise<number> {
    return (await this.#pass()).taken
  }

  async #pass(): Promise<PassResult> {
    const { files, store, clock } = this.#deps
    const pass: Pass = { taken: 0, left: 0, stale: 0, remaining: new Set(), stopped: null }
    const { stopping: signal } = this.#passes
    if (!this.#isPrepared) await this.prepare()
    try {
      this.#queued ??= new Set((await store.maildropFiles()).filter(isMaildropKey))
      for await (const names of entryNames(files, this.#folder, BATCH)) {
        await this.#takeBatch(names, this.#queued, pass)
        if (pass.stopped !== null || signal.aborted) break
        if (names.length === BATCH) await sleep(clock, PAUSE, signal)
      }
      if (pass.stopped === null && !signal.aborted) await this.#forget(this.#queued, pass)
    } catch (error) {
      pass.stopped = errorMessage(error)
    }
    this.#report(pass)
    return { taken: pass.taken, left: pass.left, isStopped: pass.stopped !== null }
  }

  /** Deletes the keys of files that a complete pass did not find, after the removal of the files is durable. */
  async #forget(queued: Set<string>, { remaining }: Pass): Promise<void> {
    const removed = [...queued].filter((key) => !remaining.has(key))
    if (removed.length === 0) return
    const folder = await this.#deps.files.open(this.#folder, constants.O_RDONLY | constants.O_DIRECTORY)
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
    await this.#deps.store.forgetMaildropFiles(removed)
    for (const key of removed) queued.delete(key)
  }

  #report({ stale, stopped }: Pass): void {
    // A local user can cause any number of passes, so a lasting reason is logged once.
    if (stopped !== null && stopped !== this.#stopped) this.#note('warning', `put off: ${stopped}`)
    else if (stopped === null && stale > this.#stale)
      this.#note('warning', `${stale === 1 ? '1 entry' : `${stale} entries`} not taken in for a day: see deferd check`)
    this.#stopped = stopped
    if (stopped === null) this.#stale = stale
  }

  #note(level: 'info' | 'warning', text: string): void {
    this.#deps.events.emit({ kind: 'note', level, text: `maildrop: ${maskControls(text)}` })
  }

  // --- entries

  async #takeBatch(names: readonly EntryName[], queued: Set<string>, pass: Pass): Promise<void> {
    const waiting = names.toSorted((a, b) => Buffer.compare(a, b)).values()
    let earlier = Promise.resolve()
    const worker = async (): Promise<void> => {
      for (const name of waiting) {
        if (pass.stopped !== null || this.#passes.stopping.aborted) return
        const { promise: isRead, resolve: end } = Promise.withResolvers<void>()
        const turn = { begun: earlier, end }
        earlier = Promise.all([earlier, isRead]).then(() => undefined)
        try {
          await this.#takeEntry({ name, turn }, queued, pass)
        } catch (error) {
          pass.stopped = errorMessage(error)
        } finally {
          turn.end()
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
  }

  async #takeEntry(listed: ListedEntry, queued: Set<string>, pass: Pass): Promise<void> {
    const { name } = listed
    const entry = await openEntry(this.#deps.files, this.#folder, name)
    switch (entry.kind) {
      case 'gone':
        return
      case 'exhausted':
        pass.stopped = entry.why
        return
      case 'left':
        return this.#leave(entry.facts, pass)
      case 'invalid':
        return this.#refuse(name, entry, pass)
      case 'message':
        try {
          await this.#takeFile(listed, { file: entry.file, queued, pass })
        } finally {
          await entry.file.close()
        }
    }
  }

  async #takeFile(
    listed: ListedEntry,
    { file, queued, pass }: { readonly file: MaildropFile; readonly queued: Set<string>; readonly pass: Pass },
  ): Promise<void> {
    const { name } = listed
    const { facts, key } = file
    try {
      if (!queued.has(key) && !(await this.#takeMessage(listed, file, pass))) return this.#leave(facts, pass)
      queued.add(key)
      await this.#remove(name, file)
    } catch (error) {
      if (queued.has(key)) pass.remaining.add(key)
      if (error instanceof InvalidFile) return this.#refuse(name, { why: error.message, facts }, pass)
      if (error instanceof StoreUnavailable) pass.stopped = error.message
      this.#leave(facts, pass)
    }
  }

  /** Resolves with true when the message, or a notice that returns it to the sender, is queued. */
  async #takeMessage({ name, turn }: ListedEntry, file: MaildropFile, pass: Pass): Promise<boolean> {
    const { acceptor, refusal, sizeLimit } = this.#deps
    const limit = sizeLimit()
    if (limit > 0 && file.length > limit) return this.#return(name, file, TOO_BIG)
    await turn.begun
    // An earlier one was put off. Mail that has left the queue since would let this one pass it.
    if (pass.stopped !== null) return false
    const { envelope, facts, key } = file
    const busy = await refusal(file.length, { sender: envelope.sender, user: undefined, address: null }, false)
    if (busy !== undefined) return this.#putOff(busy, pass)
    const accepted = await acceptor.accept({
      envelope,
      declaredSize: file.length,
      content: endingTurn(file.content(), turn),
      client: { uid: facts.uid, maildropFile: key },
    })
    if (accepted.kind === 'refused')
      return accepted.reply.code >= 500 ? this.#return(name, file, accepted.reply) : this.#putOff(accepted.reply, pass)
    // The file stays, and its key tells later whether it was queued.
    if (accepted.kind === 'unknown') return false
    pass.taken++
    this.outcomes.settle(name.toString(), `queued as ${accepted.queueId}`)
    return true
  }

  /** Leaves a file. The pass ends when no other one can be taken either, so that their order stays. */
  #putOff(reply: SmtpReply, pass: Pass): false {
    if (reply === WRITE_ERROR || reply.limit === 'queue') pass.stopped = reply.text
    return false
  }

  async #return(name: EntryName, file: MaildropFile, reply: SmtpReply): Promise<true> {
    const { envelope, length: size, key: maildropFile } = file
    await this.#deps.returnToSender({ envelope, reply, size, maildropFile, chunk: (index) => file.chunk(index) })
    const outcome = `returned to sender: ${formatReply(reply)}`
    this.#note('warning', `${shown(name)} from uid ${file.facts.uid} ${outcome}`)
    this.outcomes.settle(name.toString(), outcome)
    return true
  }

  /** Removes the file, unless its owner has replaced it with another file. */
  async #remove(name: EntryName, file: MaildropFile): Promise<void> {
    const { files } = this.#deps
    const path = pathOf(this.#folder, name)
    try {
      if (file.isAt(await files.lstat(path, { bigint: true }))) await files.unlink(path)
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
  }

  #leave(facts: EntryFacts | null, pass: Pass): void {
    pass.left++
    if (facts !== null && isStale(facts, this.#deps.clock.wall.now())) pass.stale++
  }

  /**
   * Moves an entry to the folder of refused entries, for inspection. An entry that cannot be moved, such as another user's
   * folder, stays in place.
   */
  async #refuse(name: EntryName, { why, facts }: { readonly why: string; readonly facts: EntryFacts }, pass: Pass): Promise<void> {
    const { files } = this.#deps
    // The entry's owner chose its name, which may be too long or not be text.
    const kept = `${this.#deps.clock.wall.now()}-${this.#refusals++}-${shown(name).replaceAll(/[^\w.-]/g, '_')}`
    try {
      await files.mkdir(this.#refused, { recursive: true, mode: 0o700 })
      await files.rename(pathOf(this.#folder, name), join(this.#refused, kept))
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') this.#leave(facts, pass)
      return
    }
    this.#note('warning', `${shown(name)} from uid ${facts.uid} refused: ${why}; kept as ${join(this.#refused, kept)}`)
    this.outcomes.settle(name.toString(), `refused: ${why}`)
  }
}

/** Content whose end ends the turn. */
async function* endingTurn(content: AsyncIterable<Uint8Array>, { end }: Turn): AsyncGenerator<Uint8Array> {
  yield* content
  end()
}

/** File name for the log, shortened. */
const shown = (name: EntryName): string => name.toString().slice(0, SHOWN_NAME)
