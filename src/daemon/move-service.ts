/** Moves the queue of the running daemon, one move at a time, while mail is accepted and delivered. */
import { databaseName } from '../config/values/database-url.ts'
import { placeNamed, PLACES } from '../config/values/queue-place.ts'
import { moveQueue, type MoveProgress, type MoveRequest, type MoveSummary, type SourceControl } from '../queue/queue-move.ts'
import type { SchedulerControl } from '../queue/operation-rounds.ts'
import { MoveRefused, type MovedQueue } from '../queue/queue-mover.ts'
import type { DestinationDue } from '../store/message-operation.ts'
import type { Events } from '../telemetry/events.ts'
import type { OpenedTarget } from './move-target.ts'

interface MoveServiceDeps {
  /** The queue, as operators name it: its directory, or its URL without the password. */
  readonly name: string
  readonly source: MovedQueue
  readonly events: Events
  readonly control: {
    /** As in SourceControl; rejects soon after `stopping` aborts. */
    readonly close: (stopping: AbortSignal) => Promise<void>
  } & Pick<SourceControl, 'reopen'>
  readonly openTarget: (request: MoveRequest) => Promise<OpenedTarget>
  readonly takeBack: SchedulerControl['takeBack']
  readonly returned: (due: readonly DestinationDue[]) => void
  /** Waits after a round of messages, so that mail has priority. */
  readonly throttle: (messages: number) => Promise<void>
}

export class MoveService {
  readonly #deps: MoveServiceDeps
  #target: string | null = null
  readonly #stopping = new AbortController()
  #running: Promise<unknown> = Promise.resolve()

  constructor(deps: MoveServiceDeps) {
    this.#deps = deps
  }

  /** Rejects with MoveRefused while another move runs, and as moveQueue does. */
  async perform(request: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary> {
    if (this.#target !== null)
      throw new MoveRefused(75, `the queue is being moved to ${this.#target} already: wait for the end of that move`)
    this.#target = databaseName(request.to)
    try {
      const running = this.#move(request, progress)
      this.#running = running.catch(() => undefined)
      return await running
    } finally {
      this.#target = null
    }
  }

  /** Ends a running move after its current round. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #move(request: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary> {
    const { name, events, openTarget, control } = this.#deps
    if (PLACES[placeNamed(name)].movedFrom !== request.from) {
      const text = `the daemon in this folder has the queue ${name}: stop it to move the one in the ${request.from}`
      throw new MoveRefused(75, text)
    }
    const note = (text: string) => events.emit({ kind: 'note', level: 'info', text })
    const target = await openTarget(request)
    try {
      note(`the move of this queue to ${target.name} begins${request.isFinal ? ': this daemon will refuse mail' : ''}`)
      const summary = await moveQueue(request, {
        ...this.#deps,
        target,
        names: { source: name, target: target.name },
        sendsNotices: () => true,
        pause: (messages) => this.#pause(messages),
        progress,
        control: { ...control, close: () => control.close(this.#stopping.signal) },
      })
      note(`${summary.moved} messages moved to ${target.name}${request.isFinal ? ': stop this daemon, and start one there' : ''}`)
      return summary
    } finally {
      await target.close()
    }
  }

  async #pause(messages: number): Promise<void> {
    if (this.#stopping.signal.aborted) throw new MoveRefused(75, 'the daemon stops: repeat the command to move the rest')
    await this.#deps.throttle(messages)
  }
}
