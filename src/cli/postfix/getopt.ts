/**
 * Parses options as getopt(3) does. Operands may be anywhere; options may be clustered or repeated, with attached or separate
 * values. Options are returned in the given order.
 */
import { CommandError, EX } from '../shell/exit.ts'

export interface Parsed {
  readonly options: readonly { readonly name: string; readonly value: string }[]
  readonly operands: readonly string[]
}

/**
 * Parses `args` by `spec`, a string of option letters; a colon after a letter means that the option takes a value. `--config
 * FILE` is always accepted. Throws CommandError (64) for unknown options.
 */
export function getopt(tool: string, args: readonly string[], spec: string): Parsed {
  const options: { name: string; value: string }[] = []
  const operands: string[] = []
  const wrong = (text: string) => new CommandError(EX.usage, `${tool}: ${text}`)
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? ''
    const next = (name: string): string => {
      const value = args[++at]
      if (value === undefined) throw wrong(`option requires an argument -- '${name}'`)
      return value
    }
    if (word === '--') {
      operands.push(...args.slice(at + 1))
      break
    }
    if (word === '--config') options.push({ name: 'config', value: next('config') })
    else if (word.startsWith('--config=')) options.push({ name: 'config', value: word.slice('--config='.length) })
    else if (!word.startsWith('-') || word === '-') operands.push(word)
    else {
      for (let letter = 1; letter < word.length; letter++) {
        const name = word.charAt(letter)
        const known = name === ':' ? -1 : spec.indexOf(name)
        if (known < 0) throw wrong(`invalid option -- '${name}'`)
        if (spec[known + 1] !== ':') options.push({ name, value: '' })
        else {
          const attached = word.slice(letter + 1)
          options.push({ name, value: attached === '' ? next(name) : attached })
          break
        }
      }
    }
  }
  return { options, operands }
}
