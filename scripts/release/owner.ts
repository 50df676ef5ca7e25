/** The values that only the owner of the project knows (release/owner.json). */
import { readFileSync } from 'node:fs'
import { z } from 'zod'

const text = z.string()
const days = z.int().positive().nullable()

const shape = z.strictObject({
  project: text,
  repository: z.union([z.literal(''), z.url()]),
  homepage: z.union([z.literal(''), z.url()]),
  issues: z.union([z.literal(''), z.url()]),
  security_contact: text,
  security_key: z.union([z.literal(''), z.url()]),
  conduct_contact: text,
  maintainers: z.array(text),
  release_key: text,
  answer_days: days,
  assessment_days: days,
  fix_days: days,
})

export type Owner = z.infer<typeof shape>

/** Reads the values. Throws an error that names the file and the member for one that is absent, unknown or of another type. */
export function readOwner(path: string): Owner {
  const read = shape.safeParse(JSON.parse(readFileSync(path, 'utf8')))
  if (!read.success) throw new Error(`${path}: ${z.prettifyError(read.error)}`)
  return read.data
}

/** Names of the values that are empty. A release needs all. */
export const emptyValues = (owner: Owner): readonly string[] =>
  Object.entries(owner).flatMap(([name, value]) =>
    value === null || value === '' || (Array.isArray(value) && value.length === 0) ? [name] : [],
  )
