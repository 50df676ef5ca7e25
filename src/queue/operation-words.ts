/**
 * Operations as the arguments of `deferd queue`. They are made from what is carried out, so that a record of the audit log tells the truth
 * whoever asked for the operation, and selects the same mail when it is pasted.
 */
import type { QueueName } from '../mail/message.ts'
import { formatInstant, type Moment, type NamedTime } from '../mail/message-times.ts'
import {
  CONDITION_KEYS,
  MESSAGE_CONDITIONS,
  isFiltered,
  type ConditionKind,
  type FilterValue,
  type QueueFilter,
} from '../store/message-conditions.ts'
import { formatDuration, recordedDuration } from '../system/duration.ts'
import { shellWord } from '../system/shell-word.ts'
import { ORDINARY_QUEUES, type AskedOperation, type OperationName } from './operation-request.ts'

/** Maximum number of ids in a text. */
const NAMED = 20

/** Queues whose messages an operation can change without naming a queue. */
const CHANGEABLE: Readonly<Record<OperationName, readonly QueueName[]>> = {
  flush: ['deferred'],
  hold: ['incoming', 'active', 'deferred', 'scheduled'],
  release: ['hold'],
  requeue: ORDINARY_QUEUES,
  expire: ORDINARY_QUEUES,
  delete: ORDINARY_QUEUES,
  restore: ORDINARY_QUEUES,
  reschedule: ORDINARY_QUEUES,
  reclass: ORDINARY_QUEUES,
}

/** The value of a condition in a filter, as its option takes it. */
const PRINTED: { readonly [Kind in ConditionKind]: (value: FilterValue<Kind>, moment: Moment) => string } = {
  id: (id) => id,
  sender: (address) => (address === '' ? '<>' : address),
  address: (address) => address,
  destination: (name) => name,
  queue: (name) => name,
  name: (name) => name,
  age: (arrival, { now }) => recordedDuration(Math.max(0, now - arrival)),
  rest: (end, { now }) => recordedDuration(Math.max(0, end - now)),
  instant: (at, { wall }) => formatInstant(wall.of(at)),
  count: String,
  status: (code) => code,
  text: (text) => text,
}

function printed<Kind extends ConditionKind>(kind: Kind, value: FilterValue<Kind> | null, moment: Moment): string | null {
  return value === null ? null : PRINTED[kind](value, moment)
}

/** The conditions but those of queue and id, which have words of their own. */
const conditionWords = (filter: QueueFilter, moment: Moment): readonly string[] =>
  CONDITION_KEYS.filter((key) => key !== 'queueId' && key !== 'queue').flatMap((key) => {
    const { kind, name } = MESSAGE_CONDITIONS[key]
    const text = printed(kind, filter[key], moment)
    return text === null ? [] : [`--${name.replaceAll('_', '-')}=${text}`]
  })

/** The queues to which an operation is limited. The command takes one, and refuses a list rather than to select more. */
function queueWords({ operation, selection, queues }: AskedOperation): readonly string[] {
  const asked = selection.kind === 'filter' ? selection.filter.queue : null
  // The command restores from nowhere else.
  const named = operation === 'restore' && asked === 'trash' ? null : asked
  const all = named === null ? CHANGEABLE[operation] : [named]
  const isWhole = queues === null || (all.every((one) => queues.some((other) => other === one)) && !queues.includes('corrupt'))
  if (isWhole) return named === null ? [] : [`--queue=${named}`]
  return [`--queue=${(named === null ? queues : queues.filter((one) => one === named)).join(',')}`]
}

/** A time as a request has it. */
export const namedTimeText = (time: NamedTime): string => (time.kind === 'span' ? formatDuration(time.span) : formatInstant(time.at))

const timeWord = (release: NamedTime): string => `--${release.kind === 'span' ? 'in' : 'at'}=${namedTimeText(release)}`

/** Unquoted words. Ages are counted to `moment.now`. */
export function operationWords(operation: AskedOperation, moment: Moment): readonly string[] {
  const { selection, purge, release, class: ordered } = operation
  const queue = queueWords(operation)
  const purging = [...(purge ? ['--now'] : []), ...(release === null ? [] : [timeWord(release)])]
  // The class is the last operand.
  const last = ordered === null ? [] : [ordered]
  if (selection.kind === 'ids') return [...queue, ...purging, ...operands([...selection.ids, ...last])]
  const { filter, limit } = selection
  const isAll = !isFiltered(queue.length === 0 ? { ...filter, queue: null } : filter)
  return [
    ...(isAll ? ['--all'] : conditionWords(filter, moment)),
    ...(limit === null ? [] : [`--limit=${limit}`]),
    ...queue,
    ...purging,
    ...operands([...(filter.queueId === null ? [] : [filter.queueId]), ...last]),
  ]
}

/** An id that looks like an option is none. */
const operands = (ids: readonly string[]): readonly string[] => (ids.some((id) => id.startsWith('-')) ? ['--', ...ids] : ids)

/** The first 20 ids of a text for a shell, and a comment of the shell with the number of the others. */
export const namedIds = (ids: readonly string[]): { readonly named: readonly string[]; readonly comment: string } => ({
  named: ids.slice(0, NAMED),
  comment: ids.length > NAMED ? ` # and ${ids.length - NAMED} more` : '',
})

/** The words as a text for a shell, with at most 20 ids. */
export function operationText(operation: AskedOperation, moment: Moment): string {
  const { selection } = operation
  if (selection.kind !== 'ids') return operationWords(operation, moment).map(shellWord).join(' ')
  const { named, comment } = namedIds(selection.ids)
  const words = operationWords({ ...operation, selection: { kind: 'ids', ids: named } }, moment)
  return `${words.map(shellWord).join(' ')}${comment}`
}
