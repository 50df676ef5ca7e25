/**
 * Takes mail back that was claimed and waits for a slot, so that no attempt of it begins after an operation on its message was answered.
 * Mail that is on its way into memory meanwhile is given back when it arrives.
 */
import type { DeliveryRequest, MessageId } from '../../mail/message.ts'
import type { TakenBack } from '../../store/membership/taken-back.ts'
import type { Recall } from './arriving-mail.ts'
import type { ForcedExpiry } from './forced-expiry.ts'
import type { GiveBack } from './give-back.ts'
import type { SchedulerState } from './scheduler-state.ts'

type State = Pick<SchedulerState, 'active' | 'arriving' | 'tasks'>
interface Loops {
  readonly giveBack: GiveBack
  readonly forcedExpiry: ForcedExpiry
}

export class TakeBack {
  readonly #state: State
  readonly #loops: Loops

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /**
   * Gives the mail of these messages back that has no slot, and resolves when that is committed. With `rests`, no claim follows for a time when
   * mail was given back, so that the caller can change it before it is claimed again.
   */
  async messages(messages: readonly MessageId[], { rests }: { readonly rests: boolean }): Promise<TakenBack> {
    const { active, arriving } = this.#state
    const { giveBack, forcedExpiry } = this.#loops
    const recall: Recall = { messages, rests, given: new Set(), commits: [] }
    arriving.begin(recall)
    for (const message of messages) active.recall(message)
    try {
      const wanted = new Set(messages)
      const returned = [giveBack.ofMessages(messages), forcedExpiry.giveBack(({ message }) => wanted.has(message.id))]
      await Promise.all([...returned, ...arriving.before(recall)])
      await Promise.all(recall.commits)
    } finally {
      arriving.end(recall)
    }
    return { given: [...recall.given], inTransfer: messages.filter((message) => active.isInTransfer(message)) }
  }

  /** Gives requests back whose messages are being taken back. Returns the others. The active queue does not count them. */
  passing(requests: readonly DeliveryRequest[]): readonly DeliveryRequest[] {
    const { arriving, tasks } = this.#state
    const returned = arriving.recalled(requests)
    if (returned.length === 0) return requests
    const commit = this.#loops.giveBack.ofAny(returned)
    tasks.add(commit)
    for (const { message } of returned) for (const recall of arriving.recallsOf(message.id)) recall.commits.push(commit)
    return requests.filter((request) => !returned.includes(request))
  }
}
