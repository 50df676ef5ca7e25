/** Doc comments of published types: one for each parameter of a configuration and for each key of a rule, from the tables that have them. */
import { OPTIONS } from '../src/config/options.ts'
import type { Option } from '../src/config/values/option.ts'
import * as is from '../src/config/values/values.ts'
import { KEYS, type KeyName } from '../src/testkit/remote/rule-keys.ts'

const UNITS: Readonly<Record<is.TimeUnit, string>> = { s: 'seconds', h: 'hours', d: 'days' }

const comment = (indent: string, ...sentences: readonly string[]): string =>
  `${indent}/** ${sentences
    .filter((sentence) => sentence !== '')
    .join(' ')
    .replaceAll('*/', '*\\/')} */\n`

/** Forms of a value, for kinds with a unit. */
function unitOf(kind: is.Kind<unknown>): string {
  if (kind.unit !== undefined) return `A time such as \`'5m'\` or \`'2d'\`, or a number of ${UNITS[kind.unit]}.`
  return kind === is.size ? "A size such as `'10M'`, or a number of bytes." : ''
}

function typeOf(kind: is.Kind<unknown>): string {
  if (kind === is.duration || kind === is.durationInDays || kind === is.size) return 'string | number'
  return kind.unit === undefined ? 'ParameterValue' : 'string | number | readonly string[]'
}

const defaultOf = (byDefault: string): string => (byDefault === '' ? '' : `Default: \`${byDefault}\`.`)

/** The text of src/config/values/relay-parameters.ts. */
export function relayParameters(): string {
  const members = Object.entries<Option<unknown>>(OPTIONS).map(
    ([name, { kind, about, default: byDefault }]) =>
      `${comment('  ', about, unitOf(kind), defaultOf(byDefault))}  readonly ${/^\d/.test(name) ? `'${name}'` : name}?: ${typeOf(kind)}\n`,
  )
  return `/** Parameters of a configuration in code. Written by scripts/docs.ts from src/config/options.ts; do not edit. */

/** Value of a parameter, as in a configuration file. */
export type ParameterValue = string | number | boolean | readonly string[] | Readonly<Record<string, string>>

/** Parameters by their names; a text may refer to others, as \`'$myhostname'\`. */
export type RelayParameters = {
${members.join('')}}
`
}

/** The source of src/testkit/remote/rule-keys.ts with a doc comment at each member of RuleText. */
export function withRuleComments(source: string): string {
  const start = source.indexOf('export interface RuleText {')
  const members = source.slice(start).replaceAll(/(?: {2}\/\*\* .* \*\/\n)? {2}readonly (\w+)\?: .*\n/g, (member, name: string) => {
    const { about, at = [], kind } = KEYS[name as KeyName]
    const stages = at.length === 0 ? '' : `At: ${at.join(', ')}.`
    return `${comment('  ', about, unitOf(kind), stages)}${member.replace(/^ {2}\/\*\* .*\n/, '')}`
  })
  return `${source.slice(0, start)}${members}`
}
