/** Goals of speed beside other relays, in ratios of the same round. */
import { paired, ratios, type Quantity, type Turn } from '../bench/statistics.ts'
import type { Figure, Target } from '../bench/figures/figure.ts'

interface Goal {
  readonly name: string
  readonly case: string
  /** The contestant beside which deferd is measured. */
  readonly beside: string
  readonly target: Target
  readonly unit: string
  readonly values: (deferd: readonly Turn[], other: readonly Turn[]) => number[]
}

const NAMES: Readonly<Record<string, string>> = { postfix: 'Postfix', haraka: 'Haraka', 'without-store': 'without a store' }

const ratio = (quantity: 'cpu' | 'rate', name: string, beside: string, target: Target): Goal => ({
  name: `${quantity === 'cpu' ? 'CPU per message' : 'delivered/s'} ÷ ${NAMES[beside]}, ${name}`,
  case: name,
  beside,
  target,
  unit: '',
  values: (deferd, other) => ratios(deferd, other, quantity satisfies Quantity),
})

const storeCost = (name: string, most: number): Goal => ({
  name: `CPU per message of the store, ${name}`,
  case: name,
  beside: 'without-store',
  target: { most },
  unit: 'ms',
  values: (deferd, other) => paired(deferd, other, (turn, without) => turn.cpu - without.cpu),
})

const GOALS: readonly Goal[] = [
  ratio('cpu', 'kept', 'postfix', { most: 1 / 7 }),
  ratio('cpu', 'new', 'postfix', { most: 1 / 4 }),
  ratio('rate', 'smtp-source-kept', 'postfix', { least: 7 }),
  ratio('rate', 'smtp-source-new', 'postfix', { least: 5.5 }),
  ratio('rate', 'smtp-source-kept-100', 'postfix', { least: 7 }),
  ratio('rate', 'kept', 'haraka', { least: 1 }),
  ratio('rate', 'new', 'haraka', { least: 1 }),
  ratio('rate', 'kept', 'without-store', { least: 0.6 }),
  ratio('rate', 'new', 'without-store', { least: 0.5 }),
  storeCost('kept', 0.09),
  storeCost('new', 0.2),
]

/** The goals whose cases and contestants were measured. */
export function goalsOf(turns: readonly Turn[]): Figure[] {
  return GOALS.flatMap(({ name, case: load, beside, target, unit, values }) => {
    const of = (contestant: string): readonly Turn[] => turns.filter((turn) => turn.case === load && turn.contestant === contestant)
    const measured = values(of('tree'), of(beside))
    return measured.length === 0 ? [] : [{ name, unit, target, values: measured }]
  })
}
