/** Planted bugs in the replacement of recipients, which the simulation of rewritten mail finds. */
import type { Mutant } from './mutants.ts'

const mutant = (name: string, file: string, replace: string, by: string): Mutant => ({ name, file: `src/${file}`, replace, by })

const RECIPIENTS = 'rewriting/recipient-rewriting.ts'

/** The simulation that finds them, for `hunt`. */
export const REWRITING_SIMULATION = 'simulate.ts --rewritten'

export const REWRITING_MUTANTS: readonly Mutant[] = [
  mutant('an alias loses its third address', RECIPIENTS, 'for (const one of addresses) {', 'for (const one of addresses.slice(0, 2)) {'),
  mutant(
    'no copy of all mail',
    RECIPIENTS,
    "if (address !== '') this.#addCopy(address, 'always_bcc')",
    "if (address === '') this.#addCopy(address, 'always_bcc')",
  ),
  mutant('duplicates are kept', RECIPIENTS, 'if (this.#keys.has(key)) return\n', ''),
  mutant(
    'an alias of an alias stays',
    'rewriting/virtual-aliases.ts',
    'for (let at = 0; at < addresses.length; at++) {',
    'for (let at = 0; at < 1; at++) {',
  ),
  mutant(
    'a redirected message keeps its recipients',
    'queue/intake/message-receiver.ts',
    'redirect === undefined ? envelope.recipients : redirected(envelope.recipients, redirect)',
    'redirect === undefined ? envelope.recipients : [...envelope.recipients, ...redirected(envelope.recipients, redirect)]',
  ),
  mutant(
    'an access redirect is forgotten',
    'queue/intake/message-receiver.ts',
    'redirect: content.redirect ?? session.redirect,',
    'redirect: content.redirect,',
  ),
]
