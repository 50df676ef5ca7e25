/** Moves the queue of the running daemon, one move at a time, while mail is accepted and delivered. */
import {
  moveQueue,
  type MovedQueue,
  type MoveProgress,
  type MoveRequest,
  type MoveSummary,
  type SourceControl,
} from '../queue/queue-move.ts'
import { MoveRefused } from '../queue/queue-mover.ts'
import type { DestinationDue } from '../store/queue-store.ts'
import type { Events } from '../telemetry/events.ts'
import type { OpenedTarget } from './move-target.ts'

export interface MoveServiceDeps {
  readonly queueDirectory: string
  readonly source: MovedQueue
  readonly events: Events
  readonly control: SourceControl
  readonly openTarget: (to: string) => Promise<OpenedTarget>
  readonly returned: (due: readonly DestinationDue[]) => void
  /** Waits after a round of messages, so that mail has priority. */
  readonly throttle: (messages: number) => Promise<void>
}

export class MoveService {
  readonly #deps: MoveServiceDeps
  /** The target of the running move. */
  #target: string | null = null
  #stopping = false

  constructor(deps: MoveServiceDeps) {
    this.#deps = deps
  }

  /** Rejects with MoveRefused while another move runs, and as moveQueue does. */
  async perform(request: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary> {
    if (this.#target !== null)
      throw new MoveRefused(75, `the queue is being moved to ${this.#target} already: wait for the end of that move`)
    this.#target = request.to
    try {
      return await this.#move(request, progress)
    } finally {
      this.#target = null
    }
  }

  /** Ends a running move after its current round. */
  stop(): void {
    this.#stopping = true
  }

  async #move(request: MoveRequest, progress: (soFar: MoveProgress) => void): Promise<MoveSummary> {
    const { queueDirectory, events, openTarget } = this.#deps
    const note = (text: string) => events.emit({ kind: 'note', level: 'info', text })
    const target = await openTarget(request.to)
    try {
      note(`the move of this queue to ${target.name} begins${request.isFinal ? ': this daemon will refuse mail' : ''}`)
      const names = { source: queueDirectory, target: target.name }
      const summary = await moveQueue(request, { ...this.#deps, target, names, sendsNotices: true, pause: (n) => this.#pause(n), progress })
      note(`${summary.moved} messages moved to ${target.name}${request.isFinal ? ': stop this daemon, and start one there' : ''}`)
      return summary
    } finally {
      await target.close()
    }
  }

  async #pause(messages: number): Promise<void> {
    if (this.#stopping) throw new MoveRefused(75, 'the daemon stops: repeat the command to move the rest')
    await this.#deps.throttle(messages)
  }
}
