/**
 * Chooses the dialogues that are kept: one for each destination, cause of failure and minute, to which the attempts of that minute refer, and with
 * `session_transcripts = "all"` one for each delivered message. The id of a dialogue follows from these, so that it is known without the store.
 */
import { createHash } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { causeOf } from '../mail/failure-cause.ts'
import type { AttemptResult, RecipientOutcome } from './delivery-agent.ts'
import type { DeliveryRequest } from '../mail/message.ts'
import type { Settlement } from '../store/recorded-outcomes.ts'
import type { StoredSession } from '../store/records/stored-session.ts'
import { MINUTE, type QueueTime } from '../system/clock.ts'

/** Characters of an id, each of 4 bits. */
const ID_LENGTH = 16

const hasDialogue = ({ outcomes }: Pick<AttemptResult, 'outcomes'>): boolean =>
  [...outcomes.values()].some(({ session }) => session !== undefined)

/** Returns the result without the texts of dialogues, which a listener of its event would keep in memory. */
export function withoutDialogues(result: AttemptResult): AttemptResult {
  if (!hasDialogue(result)) return result
  const outcomes = new Map([...result.outcomes].map(([id, outcome]) => [id, { ...outcome, session: undefined }]))
  return { ...result, outcomes }
}

export class KeptSessions {
  /** Ids of the current minute whose dialogue is in the store. */
  readonly #kept = new Set<string>()
  #minute = 0

  /** Adds to the attempts of a settlement the ids of their dialogues, and those dialogues that may not be in the store. */
  refer(settlement: Settlement, request: DeliveryRequest, { outcomes, times }: Pick<AttemptResult, 'outcomes' | 'times'>): Settlement {
    if (!hasDialogue({ outcomes })) return settlement
    this.#begin(Math.floor(times.endedAt / MINUTE))
    const sessions = new Map<string, StoredSession>()
    const attempts = settlement.attempts.map((attempt) => {
      const outcome = outcomes.get(attempt.recipient)
      if (outcome?.session === undefined) return attempt
      const id = this.#idOf(request, outcome, times.endedAt)
      if (!this.#kept.has(id) && !sessions.has(id)) sessions.set(id, stored(id, request, outcome.session))
      return { ...attempt, session: id }
    })
    return { ...settlement, attempts, ...(sessions.size === 0 ? {} : { sessions: [...sessions.values()] }) }
  }

  /** Notes that dialogues are in the store. */
  committed(sessions: readonly StoredSession[]): void {
    for (const { id } of sessions) this.#kept.add(id)
  }

  #begin(minute: number): void {
    if (minute === this.#minute) return
    this.#minute = minute
    this.#kept.clear()
  }

  #idOf({ destination, message }: DeliveryRequest, { outcome, status }: RecipientOutcome, at: QueueTime): string {
    const occasion = outcome === 'delivered' ? `delivered ${message.id} ${at}` : `${causeOf(status)}\0${this.#minute}`
    return createHash('sha256').update(`${destination}\0${occasion}`).digest('hex').slice(0, ID_LENGTH)
  }
}

const stored = (
  id: string,
  { destination }: DeliveryRequest,
  { at, source, host, text }: NonNullable<RecipientOutcome['session']>,
): StoredSession => ({ id, at, destination, source, host, bytes: new Uint8Array(deflateRawSync(text)) })
