/**
 * The class of a message ([class.NAME]). The listener, the lookup tables or default_class name one; a request, by a header field or a member of
 * the API, may name a lower one, and one above it only where the class allows the client.
 */
import { CLASS_MAPS, type ClassMapName } from '../../config/values/tables/class-options.ts'
import type { ClassTable } from '../../config/values/tables/class-table.ts'
import type { Config } from '../../config/options.ts'
import { Clients } from '../../config/values/limit-terms.ts'
import { constantOf } from '../../patterns/result-text.ts'
import { AddressMap } from '../../rewriting/address-map.ts'
import { addressRules, type AddressSettings } from '../../rewriting/lookup-rules.ts'
import { LookupFailed, openTable, type LookupTable, type OpenedTable } from '../../rewriting/lookup-table.ts'
import { readText } from '../../rewriting/tables.ts'
import type { Origin } from './share-key.ts'

/** The lookup tables by parameter. A parameter without tables is missing. */
export type ClassMaps = ReadonlyMap<ClassMapName, LookupTable>

interface OpenedClassMaps {
  readonly maps: ClassMaps
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

type ClassConfig = Pick<Config, ClassMapName | 'class' | 'default_class' | 'class_header'> & AddressSettings

/** Opens the tables. Throws an Error that names parameter and path when a file cannot be read, or a class does not exist. */
export function openClassMaps(config: Pick<Config, ClassMapName | 'class'>): OpenedClassMaps {
  const verify = (name: string): void => {
    if (!config.class.has(name)) throw new Error(`there is no table [class.${name}]; add it, or name another class`)
  }
  const accept = (result: Parameters<typeof constantOf>[0]) => {
    const name = constantOf(result)
    if (name !== undefined) verify(name)
    return result
  }
  const opened = CLASS_MAPS.filter((name) => config[name].length > 0).map((name): readonly [ClassMapName, OpenedTable] => [
    name,
    openTable(name, config[name], { readFile: readText, substitutes: true, verify, accept }),
  ])
  return { maps: new Map(opened.map(([name, { table }]) => [name, table])), warnings: opened.flatMap(([, { warnings }]) => warnings) }
}

/** Key of the null sender. */
const NULL_SENDER = '<>'
/** Address of the mail of users of this machine. */
const LOCAL_ADDRESS = '127.0.0.1'

/** A request for a priority as it is granted. */
export interface GrantedPriority {
  /** The class of the message. */
  readonly class: string
  /** The priority of that class, from -9 to 9; 0 for a class without one. */
  readonly priority: number
}

/** Facts about a message that decide about its class. */
export interface ClassFacts extends Origin {
  /** Class of the listener; empty for none. */
  readonly listenerClass: string
  /** Class that the client asks for; undefined without a request. */
  readonly asked: string | undefined
}

export class ClassChoice {
  readonly #classes: ReadonlyMap<string, ClassTable>
  readonly #default: string
  readonly #maps: ClassMaps
  readonly #senders: AddressMap | null
  readonly #allowed: ReadonlyMap<string, Clients>
  /** The classes with a priority, the lowest first. */
  readonly #byPriority: readonly { readonly name: string; readonly priority: number }[]
  /** Lower-case name of the header field that asks for a class; null without one. */
  readonly header: string | null

  private constructor(config: ClassConfig, maps: ClassMaps) {
    const senders = maps.get('sender_class_maps')
    this.#classes = config.class
    this.#default = config.default_class
    this.#maps = maps
    this.#senders = senders === undefined ? null : new AddressMap(senders, addressRules(config), false)
    this.#allowed = new Map([...config.class].map(([name, { allow }]) => [name, new Clients(allow, `class.${name}: allow`)]))
    this.#byPriority = [...config.class]
      .flatMap(([name, { priority }]) => (priority === null ? [] : [{ name, priority }]))
      .toSorted((a, b) => a.priority - b.priority)
    this.header = config.class_header === '' ? null : config.class_header.toLowerCase()
  }

  /** Null without classes. */
  static of(config: ClassConfig, maps: ClassMaps): ClassChoice | null {
    return config.class.size === 0 ? null : new ClassChoice(config, maps)
  }

  /** True when a class has a priority: clients may ask by MT-PRIORITY. */
  get hasPriorities(): boolean {
    return this.#byPriority.length > 0
  }

  /**
   * The class that a request for a priority (RFC 6710) gets. A priority between those of two classes stands for the higher one. Throws
   * LookupFailed.
   */
  granted(priority: number, facts: Omit<ClassFacts, 'asked'>): GrantedPriority {
    const asked = (this.#byPriority.find((one) => one.priority >= priority) ?? this.#byPriority.at(-1))?.name
    const name = this.classOf({ ...facts, asked })
    return { class: name, priority: this.#classes.get(name)?.priority ?? 0 }
  }

  /** The name of the class. Throws LookupFailed. */
  classOf(facts: ClassFacts): string {
    const base = facts.listenerClass || (this.#mapped(facts) ?? this.#default)
    const { asked } = facts
    return asked !== undefined && this.#isGranted(asked, base, facts) ? asked : base
  }

  #isGranted(asked: string, base: string, { user, address }: ClassFacts): boolean {
    const [wanted, given] = [this.#classes.get(asked), this.#classes.get(base)]
    if (wanted === undefined) return false
    if (wanted.weight <= (given?.weight ?? 0)) return true
    return this.#allowed.get(asked)?.has({ user, address: address ?? LOCAL_ADDRESS }) === true
  }

  #mapped({ sender, user, address }: ClassFacts): string | undefined {
    const client = address ?? LOCAL_ADDRESS
    const found =
      (user === undefined ? undefined : this.#maps.get('sasl_class_maps')?.find(user.toLowerCase(), user)) ??
      this.#ofSender(sender) ??
      this.#maps.get('client_class_maps')?.find(client, client)
    if (found === undefined || this.#classes.has(found)) return found
    throw new LookupFailed(
      `a lookup table of classes has ${JSON.stringify(found)}, and there is no table [class.${found}]; add it, or correct the table`,
    )
  }

  #ofSender(sender: string): string | undefined {
    if (sender === '') return this.#maps.get('sender_class_maps')?.find(NULL_SENDER, NULL_SENDER)
    return this.#senders?.find(sender)?.value
  }
}
