/**
 * Classes of mail ([class.NAME]), by weight. The store has the recipients of each class under a number, the band, which stays with the
 * name: mail of a class that the configuration no longer has is delivered as that of `default_class`.
 */

/** A class as the scheduler needs it. */
export interface SchedulingClass {
  readonly name: string
  /** Part of the starts that it gets when all classes have mail, relative to the weights of the others. */
  readonly weight: number
  /** Part of the places, from 0 to 0.5, that classes of less weight leave free. */
  readonly reserve: number
}

/** The weights of shares, where deliveries are shared fairly (fair_share). */
export interface FairShares {
  /** A number from 1 to 1000. */
  weightOf(share: string): number
}

/** Classes and shares, by which deliveries have turns. */
export interface TurnPolicies {
  readonly classes: MailClasses
  /** Null without fair shares. */
  readonly shares: FairShares | null
}

/** Number of a class in the store. Mail without a class, as from before there were any, has band 0. */
export type Band = number

export const NO_CLASS: Band = 0

/** The bands of classes that the store knows, filled at the start and by each reload. */
export class ClassBands {
  #bands: ReadonlyMap<string, Band> = new Map()
  #names: ReadonlyMap<Band, string> = new Map()

  replace(classes: Iterable<{ readonly name: string; readonly band: Band }>): void {
    const all = [...classes]
    this.#bands = new Map(all.map(({ name, band }) => [name, band]))
    this.#names = new Map(all.map(({ name, band }) => [band, name]))
  }

  of(name: string | undefined): Band {
    return name === undefined ? NO_CLASS : (this.#bands.get(name) ?? NO_CLASS)
  }

  has(name: string): boolean {
    return this.#bands.has(name)
  }

  nameOf(band: Band): string | undefined {
    return this.#names.get(band)
  }

  /** All bands, that of mail without a class first. */
  get all(): readonly Band[] {
    return [NO_CLASS, ...this.#names.keys()]
  }
}

/** The one class of a configuration without any. */
const ONLY: SchedulingClass = { name: '', weight: 1, reserve: 0 }

export class MailClasses {
  readonly #classes: ReadonlyMap<string, SchedulingClass>
  readonly #default: SchedulingClass
  readonly bands: ClassBands
  /** Sums of the reserves of a class and of those above it. */
  readonly #reserved = new Map<SchedulingClass, number>()
  /** The classes, the greatest weight first. */
  readonly all: readonly SchedulingClass[]

  constructor(classes: ReadonlyMap<string, SchedulingClass> = new Map(), defaultClass = '', bands = new ClassBands()) {
    this.#classes = classes
    this.#default = classes.get(defaultClass) ?? ONLY
    this.bands = bands
    this.all = classes.size === 0 ? [ONLY] : [...classes.values()].toSorted((a, b) => b.weight - a.weight)
    let reserved = 0
    for (const one of this.all) this.#reserved.set(one, (reserved += one.reserve))
  }

  /** True with several classes: mail of different classes competes. */
  get compete(): boolean {
    return this.all.length > 1
  }

  /** Names of the classes that have tables, the greatest weight first. */
  get names(): readonly string[] {
    return this.#classes.size === 0 ? [] : this.all.map(({ name }) => name)
  }

  has(name: string): boolean {
    return this.#classes.has(name)
  }

  named(name: string | undefined): SchedulingClass {
    return (name === undefined ? undefined : this.#classes.get(name)) ?? this.#default
  }

  /** Class of mail for which nothing names one; undefined without classes. */
  get defaultName(): string | undefined {
    return this.#classes.size === 0 ? undefined : this.#default.name
  }

  /** Class of a notice about mail of a class: the same one, but at least the default one. */
  ofNotice(name: string | undefined): string | undefined {
    const own = this.named(name)
    return own.weight > this.#default.weight ? own.name : this.defaultName
  }

  ofBand(band: Band): SchedulingClass {
    return this.named(this.bands.nameOf(band))
  }

  /** Each class of more weight, with the part of the places that it and those above it reserve. */
  reservedAbove(lower: SchedulingClass): readonly { readonly above: SchedulingClass; readonly reserved: number }[] {
    return this.all.flatMap((above) => {
      const reserved = above.weight > lower.weight && above.reserve > 0 ? (this.#reserved.get(above) ?? 0) : 0
      return reserved > 0 ? [{ above, reserved }] : []
    })
  }
}
