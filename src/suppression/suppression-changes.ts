/** Changes of the suppression list by order of operators, with their records in the audit log and their events. */
import type { Actor } from '../store/records/audit-log.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import { maskControls } from '../mail/smtp-reply.ts'
import type { QueueStore } from '../store/queue-store.ts'
import {
  FIRST_KEY,
  type NewSuppression,
  type Suppression,
  type SuppressionFilter,
  type SuppressionKey,
  type SuppressionReason,
} from '../store/records/suppression-entry.ts'
import { SECOND, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import { formatDuration, recordedDuration } from '../system/duration.ts'
import { shellWord } from '../system/shell-word.ts'
import type { EventOf, Events } from '../telemetry/events.ts'

/** An entry that an operator adds. */
export interface RequestedSuppression extends SuppressionKey {
  readonly reason: SuppressionReason
  /** Text that the refusal quotes; null for none. Its lines are joined by spaces, and other control characters masked, as in replies of hosts. */
  readonly text: string | null
  /** Time after which the entry ends; null for never. */
  readonly duration: Duration | null
}

/** An entry of an import; null ends never. */
export interface ImportedSuppression extends Omit<RequestedSuppression, 'duration'> {
  readonly until: QueueTime | null
}

/** The entries that a removal concerns: those with keys, or those that match. */
type SuppressionSelection =
  | { readonly kind: 'keys'; readonly keys: readonly SuppressionKey[] }
  | { readonly kind: 'filter'; readonly filter: SuppressionFilter }

interface SuppressionRemoval extends Actor {
  readonly selection: SuppressionSelection
  readonly dryRun: boolean
}

export interface SuppressionChangesDeps {
  readonly store: Pick<QueueStore, 'records' | 'outbox'>
  readonly clock: Clock
  readonly recorder: Pick<EventRecorder, 'of'>
  readonly events: Events
  /** Called after each change of entries. */
  readonly changed: () => Promise<void>
}

type ListEvent = EventOf<'suppressed' | 'suppression-added' | 'suppression-removed' | 'suppression-stopped'>

/** Entries that are read or deleted at once. */
const PAGE = 500

/** Emits events of the list, and has the store keep those that a subscription wants. */
export async function tell(
  happened: ListEvent,
  { events, recorder, store }: Pick<SuppressionChangesDeps, 'events' | 'recorder'> & { readonly store: Pick<QueueStore, 'outbox'> },
): Promise<void> {
  events.emit(happened)
  const recorded = recorder.of(happened)
  if (recorded !== undefined) await store.outbox.recordEvents(recorded)
}

/** Members of the event of a change of one entry. */
export const changeOf = (
  { scope, address, reason, reply: text, until }: Pick<NewSuppression, 'scope' | 'address' | 'reason' | 'reply' | 'until'>,
  by: string,
  { wall }: Pick<Clock, 'wall'>,
) => ({ scope, address, reason, by, text, until: until === null ? null : wall.of(until), entries: 1 })

export class SuppressionChanges {
  readonly #deps: SuppressionChangesDeps

  constructor(deps: SuppressionChangesDeps) {
    this.#deps = deps
  }

  /** Adds an entry in place of the one with its key. */
  async add({ duration, ...wanted }: RequestedSuppression, actor: Actor): Promise<void> {
    const { clock } = this.#deps
    const entry = entryOf({ ...wanted, until: duration === null ? null : clock.now() + duration }, clock.now(), actor.who)
    await this.#deps.store.records.suppressions.putAll([entry])
    await this.#audit('suppression-add', additionWords(entry, duration), 1, actor)
    await this.#tellAdded([entry], actor.who)
  }

  /** Adds all entries, whose keys differ, in one transaction, in place of those with the same keys. */
  async import(wanted: readonly ImportedSuppression[], actor: Actor): Promise<void> {
    if (wanted.length === 0) return
    const now = this.#deps.clock.now()
    const entries = wanted.map((one) => entryOf(one, now, actor.who))
    await this.#deps.store.records.suppressions.putAll(entries)
    await this.#audit('suppression-import', [], entries.length, actor)
    await this.#tellAdded(entries, actor.who)
  }

  /** Removes entries. Returns them, the first PAGE of them in full, and their number. */
  async remove({
    selection,
    dryRun,
    ...actor
  }: SuppressionRemoval): Promise<{ readonly count: number; readonly first: readonly Suppression[] }> {
    let count = 0
    const first: Suppression[] = []
    for await (const page of this.#selected(selection)) {
      count += page.length
      first.push(...page.slice(0, PAGE - first.length))
      if (!dryRun) await this.#deps.store.records.suppressions.removeAll(page)
    }
    if (dryRun || count === 0) return { count, first }
    await this.#audit('suppression-remove', wordsOf(selection, this.#deps.clock.now()), count, actor)
    const { clock } = this.#deps
    const [only] = first
    const change = count === 1 && only !== undefined ? changeOf(only, actor.who, clock) : severalOf(count, actor.who)
    await tell({ kind: 'suppression-removed', ...change }, this.#deps)
    await this.#deps.changed()
    return { count, first }
  }

  /** Ends the stop of automatic listings of a scope. Returns false when there is none. */
  async resume(scope: string, actor: Actor): Promise<boolean> {
    const isResumed = await this.#deps.store.records.suppressionStops.resume(scope)
    if (isResumed) await this.#audit('suppression-resume', [scope], 1, actor)
    return isResumed
  }

  async *#selected(selection: SuppressionSelection): AsyncGenerator<readonly Suppression[]> {
    const { suppressions } = this.#deps.store.records
    if (selection.kind === 'keys') {
      const found = await Promise.all(selection.keys.map(({ scope, address }) => suppressions.of(scope, address)))
      yield found.filter((one) => one !== undefined)
      return
    }
    const now = this.#deps.clock.now()
    let after = FIRST_KEY
    for (;;) {
      const page = await suppressions.page({ ...selection.filter, now, after, limit: PAGE })
      yield page
      if (page.length < PAGE) return
      after = page.at(-1) ?? after
    }
  }

  async #tellAdded(entries: readonly NewSuppression[], who: string): Promise<void> {
    const [only] = entries
    const change = entries.length === 1 && only !== undefined ? changeOf(only, who, this.#deps.clock) : severalOf(entries.length, who)
    await tell({ kind: 'suppression-added', ...change }, this.#deps)
    await this.#deps.changed()
  }

  async #audit(action: string, words: readonly string[], changed: number, actor: Actor): Promise<void> {
    const { store, clock } = this.#deps
    await store.records.audit.add({ at: clock.now(), ...actor, action, arguments: words.map(shellWord).join(' '), changed })
  }
}

const severalOf = (entries: number, by: string) => ({ scope: null, address: null, reason: null, by, text: null, until: null, entries })

const oneLine = (text: string): string =>
  maskControls(
    text
      .trim()
      .split(/\s*[\r\n]+\s*/)
      .join(' '),
  )

const entryOf = ({ scope, address, reason, text, until }: ImportedSuppression, now: QueueTime, addedBy: string): NewSuppression => ({
  scope,
  address,
  reason,
  reply: oneLine(text ?? '') || null,
  destination: null,
  since: now,
  until,
  hits: 0,
  firstHitAt: null,
  lastHitAt: null,
  addedBy,
  listings: 0,
  strikes: [],
})

/** Arguments of the command that adds an entry. */
const additionWords = ({ address, scope, reason, reply: text }: NewSuppression, duration: Duration | null): readonly string[] => [
  address,
  `--scope=${scope}`,
  `--reason=${reason}`,
  ...(text === null ? [] : [`--text=${text}`]),
  ...(duration === null ? [] : [`--for=${recordedDuration(duration)}`]),
]

/** Arguments of the command that removes entries. */
function wordsOf(selection: SuppressionSelection, now: QueueTime): readonly string[] {
  if (selection.kind === 'keys') return selection.keys.flatMap(({ scope, address }) => [address, `--scope=${scope}`])
  const { since, ...texts } = selection.filter
  const given = Object.entries(texts).flatMap(([name, value]) => (value === null ? [] : [`--${name}=${value}`]))
  return since === null ? given : [...given, `--since=${formatDuration(Math.round((now - since) / SECOND) * SECOND)}`]
}
