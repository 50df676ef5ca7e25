/** Promises of an OpenAPI document: operations, parameters, answers, and the members of requests and answers with their types. */

/** Promises by name, such as `answer Now.version` with `string required`. */
export type Surface = Readonly<Record<string, string>>

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema | false
  readonly prefixItems?: readonly Schema[]
  readonly additionalProperties?: Schema | boolean
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema?: Schema }[]
  readonly requestBody?: Content
  readonly responses?: Readonly<Record<string, Content>>
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly webhooks?: Readonly<Record<string, { readonly post: Operation }>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Requests are written by programs, answers are read by them: a new required member breaks the one, one that may be absent the other. */
type Side = 'request' | 'answer'

const branchesOf = ({ anyOf = [], oneOf = [], allOf = [] }: Schema): readonly Schema[] => [...anyOf, ...oneOf, ...allOf]

const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1)

/** Names of the types of a value, sorted. */
function typesOf(schema: Schema): readonly string[] {
  const { $ref, type, const: only } = schema
  const own = $ref !== undefined ? [nameOf($ref)] : type !== undefined ? [type].flat() : only === null ? ['null'] : []
  return [...new Set([...own, ...branchesOf(schema).flatMap(typesOf)])].toSorted()
}

/** Collects the promises of one document. */
class ApiSurface {
  readonly promises = new Map<string, string>()
  readonly #schemas: Readonly<Record<string, Schema>>

  constructor({ components }: OpenApiDocument) {
    this.#schemas = components.schemas
  }

  operation(name: string, { parameters = [], requestBody, responses = {} }: Operation): void {
    this.promises.set(name, 'operation')
    for (const { name: parameter, in: place, required, schema = {} } of parameters)
      this.#value('request', `${name} ${place} ${parameter}`, schema, required === true)
    for (const [media, { schema = {} }] of Object.entries(requestBody?.content ?? {}))
      this.#value('request', `${name} ${media}`, schema, false)
    for (const [status, { content = {} }] of Object.entries(responses)) {
      this.promises.set(`${name} ${status}`, 'answer')
      for (const [media, { schema = {} }] of Object.entries(content)) this.#value('answer', `${name} ${status} ${media}`, schema, true)
    }
  }

  #value(side: Side, path: string, schema: Schema, required: boolean): void {
    this.promises.set(`${side} ${path}`, [...typesOf(schema), ...(required ? ['required'] : [])].join(' '))
    this.#parts(side, path, schema)
  }

  #parts(side: Side, path: string, schema: Schema): void {
    const { $ref, properties = {}, required = [], items, additionalProperties, enum: values = [] } = schema
    if ($ref !== undefined) return this.#named(side, nameOf($ref))
    for (const value of [...values, ...(schema.const === undefined || schema.const === null ? [] : [schema.const])])
      this.promises.set(`${side} ${path} = ${String(value)}`, 'value')
    for (const [name, member] of Object.entries(properties)) this.#value(side, `${path}.${name}`, member, required.includes(name))
    if (typeof items === 'object') this.#value(side, `${path}[]`, items, false)
    if (typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0)
      this.#value(side, `${path}{}`, additionalProperties, false)
    for (const branch of branchesOf(schema)) this.#parts(side, path, branch)
  }

  #named(side: Side, name: string): void {
    if (this.promises.has(`${side} ${name}`)) return
    this.#value(side, name, this.#schemas[name] ?? {}, false)
  }
}

export function apiSurface(document: OpenApiDocument): Surface {
  const surface = new ApiSurface(document)
  for (const [path, operations] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(operations)) surface.operation(`${method.toUpperCase()} ${path}`, operation)
  // The relay writes the bodies of webhooks.
  for (const [name, { post }] of Object.entries(document.webhooks ?? {}))
    surface.operation(`webhook ${name}`, { responses: { body: post.requestBody ?? {} } })
  return Object.fromEntries(surface.promises)
}
