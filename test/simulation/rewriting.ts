/** Scenarios with aliases, copies and redirected mail, and the recipients that such mail must have. */
import { Dice } from './generator.ts'
import type { Mail, Scenario, SimulatedRewriting, Step, Value } from './scenario.ts'

/** The scenario with rules that replace recipients, and with mail to aliases and from redirected senders. */
export function rewritten(scenario: Scenario): Scenario {
  const dice = new Dice(scenario.seed + 0x5eed)
  const at = () => dice.one(scenario.destinations)
  const [first = ''] = scenario.destinations
  const aliases = {
    [`list@${first}`]: [`ann@${at()}`, `bob@${at()}`, `eve@${at()}`],
    // The first address of an alias is looked up at once, the others later.
    [`desk@${first}`]: [`joe@${at()}`, `list@${first}`],
    [`old@${first}`]: [`ann@${at()}`],
  }
  const rewriting = { aliases, copyTo: `sender@${at()}`, redirects: { [`moved@${first}`]: `eve@${at()}` } }
  return { ...scenario, rewriting, steps: scenario.steps.map((step) => stepOf(step, rewriting, dice)) }
}

function stepOf(step: Step, { aliases, redirects }: SimulatedRewriting, dice: Dice): Step {
  if (step.do !== 'mail') return step
  const { mail } = step
  const alias = dice.chance(0.6) ? [{ address: dice.one(Object.keys(aliases)) }] : []
  const sender = dice.chance(0.2) ? dice.one(Object.keys(redirects)) : mail.sender
  return { ...step, mail: { ...mail, sender, to: [...alias, ...mail.to] } }
}

/** The parameters of the rules. Recipients with one address get one copy. */
export function rewritingConfig(rewriting: SimulatedRewriting | undefined): Readonly<Record<string, Value>> {
  if (rewriting === undefined) return {}
  const table = (entries: readonly (readonly [key: string, value: string])[]) =>
    `inline:{${entries.map(([key, value]) => `{${key} = ${value}}`).join(', ')}}`
  const redirects = Object.entries(rewriting.redirects).map(([sender, address]) => [sender, `REDIRECT ${address}`] as const)
  return {
    virtual_alias_maps: table(Object.entries(rewriting.aliases).map(([alias, addresses]) => [alias, addresses.join(' ')] as const)),
    always_bcc: rewriting.copyTo,
    enable_original_recipient: false,
    smtpd_sender_restrictions: `check_sender_access ${table(redirects)}`,
  }
}

/** The recipients that accepted mail must have, sorted. Computed independently of the product's code. */
export function recipientsOf({ sender, to }: Mail, rewriting: SimulatedRewriting | undefined): readonly string[] {
  const given = to.map(({ address }) => address)
  if (rewriting === undefined) return given.toSorted()
  const redirect = rewriting.redirects[sender]
  if (redirect !== undefined) return [redirect]
  const replaced = (address: string): readonly string[] => rewriting.aliases[address]?.flatMap(replaced) ?? [address]
  return [...new Set([...given.flatMap(replaced), rewriting.copyTo])].toSorted()
}
