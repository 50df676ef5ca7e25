/** The statements that the files of an engine export. The names of parts of statements are in capitals. */
import { globSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../src/store')

/** Entries of threads, which run when they are imported, and the care of the file, whose statements read all of it. */
const LEFT_OUT = /^sqlite\/(?:clients\/(?:reader-worker|worker-main)\.ts|file\/)/

const isStatement = (name: string, text: unknown): text is string =>
  /^[a-z]/.test(name) && typeof text === 'string' && /^\s*(?:with|select|insert|update|delete)\b/.test(text)

/** Name and text of each statement. */
export async function engineStatements(engine: 'sqlite' | 'postgres'): Promise<readonly (readonly [string, string])[]> {
  const files = globSync(`${engine}/**/*.ts`, { cwd: ROOT }).filter((file) => !LEFT_OUT.test(file))
  const modules = await Promise.all(files.toSorted().map((file) => import(join(ROOT, file)) as Promise<object>))
  return modules.flatMap((module) =>
    Object.entries<unknown>(module as Readonly<Record<string, unknown>>).flatMap(([name, text]) =>
      isStatement(name, text) ? [[name, text] as const] : [],
    ),
  )
}
