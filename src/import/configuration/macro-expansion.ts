/**
 * Expands the references in Postfix's configuration (postconf(5)): `$name`, `${name}`, `$(name)`, `${name?text}`, `${name:text}`,
 * `${name?{text}:{text}}`, and `${{text} == {text} ? {text} : {text}}`. Pure.
 */

/** The unexpanded value of a parameter; undefined for an unknown one. */
type Lookup = (name: string) => string | undefined

/** Deeper references count as circular, as in Postfix. */
const DEEPEST_NESTING = 100

/** Expands a value. Throws an Error for a circular reference and for malformed text. */
export const expandMacros = (text: string, lookup: Lookup): string => expand(text, lookup, 0)

function expand(text: string, lookup: Lookup, depth: number): string {
  if (depth > DEEPEST_NESTING) throw new Error('its references are circular')
  let result = ''
  for (let at = 0; at < text.length;) {
    const dollar = text.indexOf('$', at)
    if (dollar < 0) return result + text.slice(at)
    result += text.slice(at, dollar)
    const next = text[dollar + 1] ?? ''
    if (next === '{' || next === '(') {
      const end = closing(text, dollar + 1)
      result += valueOf(text.slice(dollar + 2, end), lookup, depth)
      at = end + 1
    } else {
      const name = /^\w*/.exec(text.slice(dollar + 1))?.[0] ?? ''
      result += name === '' ? '$' : expand(lookup(name) ?? '', lookup, depth + 1)
      at = dollar + 1 + (name === '' && next === '$' ? 1 : name.length)
    }
  }
  return result
}

/** Offset of the brace or parenthesis that closes the one at `open`. */
function closing(text: string, open: number): number {
  const [opens, closes] = text[open] === '{' ? ['{', '}'] : ['(', ')']
  for (let at = open, level = 0; at < text.length; at++) {
    if (text[at] === opens) level++
    if (text[at] === closes && --level === 0) return at
  }
  throw new Error(`${text[open] ?? ''} has no counterpart`)
}

/** Value of the text between the braces of a reference. */
function valueOf(inner: string, lookup: Lookup, depth: number): string {
  const text = inner.trimStart()
  if (text.startsWith('{')) return comparison(text, lookup, depth)
  const [, name = '', sign = '', rest = ''] = /^(\w+)\s*([?:]?)(.*)$/s.exec(text) ?? []
  if (name === '' || (sign === '' && rest.trim() !== '')) throw new Error(`\${${inner}} is malformed`)
  const value = expand(lookup(name) ?? '', lookup, depth + 1)
  if (sign === '') return value
  if (sign === ':') return value === '' ? expand(unbraced(rest), lookup, depth + 1) : value
  return expand(chosen(rest, value !== ''), lookup, depth + 1)
}

const OPERATOR = /^(<=?level|>=?level|==level|!=level|==|!=|<=|>=|<|>)/

function comparison(text: string, lookup: Lookup, depth: number): string {
  const [left, afterLeft] = braced(text)
  const operator = OPERATOR.exec(afterLeft)?.[0]
  if (operator === undefined) throw new Error(`\${${text}} has no operator`)
  const [right, choice] = braced(afterLeft.slice(operator.length).trimStart())
  const sides = [left, right].map((side) => expand(side, lookup, depth + 1)) as [string, string]
  const holds = compares(operator.replace('level', ''), order(...sides, operator.endsWith('level')))
  if (choice === '') return holds ? 'true' : ''
  if (!choice.startsWith('?')) throw new Error(`\${${text}} is malformed`)
  return expand(chosen(choice.slice(1), holds), lookup, depth + 1)
}

/** The text in the braces at the beginning, and the text after them. */
function braced(text: string): readonly [inner: string, rest: string] {
  if (!text.startsWith('{')) throw new Error(`${JSON.stringify(text)} has no braces`)
  const end = closing(text, 0)
  return [text.slice(1, end).trim(), text.slice(end + 1).trimStart()]
}

const unbraced = (text: string): string => (text.trimStart().startsWith('{') ? braced(text.trimStart())[0] : text)

/** One text of `{text} : {text}`; for a text without braces, the text itself or nothing. */
function chosen(text: string, first: boolean): string {
  if (!text.trimStart().startsWith('{')) return first ? text : ''
  const [yes, rest] = braced(text.trimStart())
  if (first || rest === '') return first ? yes : ''
  return unbraced(rest.replace(/^:\s*/, ''))
}

/** Negative, 0 or positive, as `left` sorts before, equal to or after `right`. */
function order(left: string, right: string, isLevel: boolean): number {
  if (isLevel) return levels(left).reduce((found, part, i) => (found === 0 ? part - (levels(right)[i] ?? 0) : found), 0)
  const numbers = /^\d+$/.test(left) && /^\d+$/.test(right)
  if (numbers) return Number(left) - Number(right)
  return left < right ? -1 : left > right ? 1 : 0
}

/** The three numbers of a compatibility level. */
const levels = (text: string): readonly number[] => [0, 1, 2].map((i) => Number(text.split('.')[i] ?? 0) || 0)

function compares(operator: string, sign: number): boolean {
  if (operator === '==') return sign === 0
  if (operator === '!=') return sign !== 0
  if (operator.endsWith('=') && sign === 0) return true
  return operator.startsWith('<') ? sign < 0 : sign > 0
}
