/** Filter options that select messages. A message must match all given filters. */
import { QUEUE_NAMES } from '../../mail/message.ts'
import { InvalidArgumentError, Option, type Command } from 'commander'
import {
  CONDITION_KEYS,
  MESSAGE_CONDITIONS,
  type ConditionKind,
  type GivenConditions,
  type GivenValues,
} from '../../store/message-conditions.ts'
import { formatInstant, isRange } from '../../mail/message-times.ts'
import { STATUS_PATTERN } from '../../patterns/filter-pattern.ts'
import { formatDuration } from '../../system/duration.ts'
import { countArgument, durationArgument, instantArgument } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'

export interface FilterOptions {
  readonly limit?: number
}

/** In characters, as in the API. */
const LONGEST_TEXT = 1_000

function textArgument(text: string): string {
  if (text.length <= LONGEST_TEXT) return text
  throw new InvalidArgumentError(`Expected at most ${LONGEST_TEXT} characters.`)
}

/** An enhanced status code (RFC 3463), or a pattern of one. */
function statusArgument(text: string): string {
  if (STATUS_PATTERN.test(text)) return text
  throw new InvalidArgumentError('Expected a code such as 4.7.0, or a pattern such as 4.7.*.')
}

/** Parsers of the kinds; null for a choice, and for an id, which commands take as an operand. */
const PARSERS: { readonly [Kind in ConditionKind]: ((text: string) => GivenValues[Kind]) | null } = {
  id: null,
  sender: textArgument,
  address: textArgument,
  destination: textArgument,
  queue: null,
  name: textArgument,
  age: durationArgument,
  rest: durationArgument,
  instant: instantArgument,
  count: countArgument,
  status: statusArgument,
  text: textArgument,
}

const optionsFor = (queues: readonly string[]): readonly Option[] =>
  CONDITION_KEYS.flatMap((key) => {
    const { kind, name, argument, about } = MESSAGE_CONDITIONS[key]
    if (kind === 'id') return []
    const option = new Option(`--${name.replaceAll('_', '-')} <${argument}>`, about)
    const parse: ((text: string) => unknown) | null = PARSERS[kind]
    return parse === null ? [option.choices(queues)] : [option.argParser<unknown>(parse)]
  })

export function withFilters(command: Command, queues: readonly string[] = QUEUE_NAMES): Command {
  for (const option of optionsFor(queues)) command.addOption(option)
  return command.option('--limit <n>', 'maximum number of messages, the oldest first', countArgument)
}

/** A value as a request has it. */
function requested(kind: ConditionKind, value: string | number): string | number {
  if (typeof value === 'string') return value
  return kind === 'age' || kind === 'rest' ? formatDuration(value) : kind === 'instant' ? formatInstant(value) : value
}

/** The conditions as texts and numbers, as the API reads them. */
export const conditionTexts = (given: GivenConditions): Readonly<Record<string, string | number>> =>
  Object.fromEntries(
    CONDITION_KEYS.flatMap((key) => {
      const { name, kind } = MESSAGE_CONDITIONS[key]
      const value = given[name]
      return value === undefined ? [] : [[name, requested(kind, value)]]
    }),
  )

/** The conditions among parsed options, which `withFilters` has added to the command. Throws CommandError (64) for a reversed range. */
export function givenConditions(options: object): GivenConditions {
  const given: GivenConditions = Object.fromEntries(
    Object.entries(options).flatMap(([option, value]) => {
      const name = option.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      return CONDITION_KEYS.some((key) => MESSAGE_CONDITIONS[key].name === name) ? [[name, value]] : []
    }),
  )
  if (isRange(given.arrived_after, given.arrived_before)) return given
  throw new CommandError(EX.usage, '--arrived-before is not after --arrived-after: no message arrived then')
}
