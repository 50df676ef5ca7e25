/**
 * Tables of networks (Postfix cidr_table(5)): lines of `[!]NETWORK[/LENGTH] RESULT`, and `if NETWORK` … `endif`, in the order of their lines.
 * A key that is no address has no result. Pure.
 */
import { BlockList, isIP } from 'node:net'
import { errorMessage } from '../system/caught-error.ts'
import type { RuleLine } from './pattern-table.ts'

type Condition = (address: string) => boolean

interface Rule {
  readonly matches: Condition
  /** Null for a condition, whose `end` is the index of the rule after `endif`. */
  readonly result: string | null
  end: number
}

export class CidrTable {
  readonly #rules: readonly Rule[]

  /** Throws an Error that begins with the place of the rule. `accept` throws for a result that cannot be used. */
  constructor(lines: readonly RuleLine[], accept: (result: string) => void) {
    this.#rules = parseRules(lines, accept)
  }

  find(key: string): string | undefined {
    if (isIP(key) === 0) return undefined
    for (let at = 0; at < this.#rules.length;) {
      const { matches, result, end } = this.#rules[at]!
      const holds = matches(key)
      if (holds && result !== null) return result
      at = holds || result !== null ? at + 1 : end
    }
    return undefined
  }
}

function parseRules(lines: readonly RuleLine[], accept: (result: string) => void): readonly Rule[] {
  const rules: Rule[] = []
  const open: { readonly rule: Rule; readonly where: string }[] = []
  for (const { where, text } of lines) {
    try {
      if (/^endif\s*$/i.test(text)) {
        const last = open.pop()
        if (last === undefined) throw new Error('endif has no if; remove it')
        last.rule.end = rules.length
        continue
      }
      const [, condition, not = '', network = '', result = ''] = /^(if\s+(?=[!\d[:a-f]))?\s*((?:!\s*)*)(\S+)\s*(.*)$/is.exec(text) ?? []
      const rule = { matches: conditionOf(network, not), result: condition === undefined ? result.trim() : null, end: 0 }
      if (rule.result === '') throw new Error(`${JSON.stringify(text)} has no result; write NETWORK RESULT`)
      if (rule.result === null) open.push({ rule, where })
      else accept(rule.result)
      rules.push(rule)
    } catch (error) {
      throw new Error(`${where}: ${errorMessage(error)}`, { cause: error })
    }
  }
  const unclosed = open.at(-1)
  if (unclosed !== undefined) throw new Error(`${unclosed.where}: if has no endif; add a line endif`)
  return rules
}

function conditionOf(network: string, not: string): Condition {
  const [, bracketed, plain, bits] = /^(?:\[([^\]/]+)\]|([^/[\]]+))(?:\/(\d{1,3}))?$/.exec(network) ?? []
  const address = bracketed ?? plain ?? ''
  const family = isIP(address)
  const width = family === 6 ? 128 : 32
  const length = bits === undefined ? width : Number(bits)
  if (family === 0 || length > width) throw new Error(`${JSON.stringify(network)} is no network; write one such as 192.0.2.0/24`)
  const name = family === 6 ? 'ipv6' : 'ipv4'
  const block = new BlockList()
  block.addSubnet(address, length, name)
  const includes = not.replaceAll(/\s/g, '').length % 2 === 0
  // A network excludes addresses of its own family only, as in Postfix.
  return (key) => isIP(key) === family && block.check(key, name) === includes
}
