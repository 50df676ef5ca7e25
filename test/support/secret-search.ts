/** Searches for secrets in everything that was shown or stored. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Texts by their place. */
export type Shown = ReadonlyMap<string, string>

/** Files below a folder, as Latin-1 text by their path. */
export function filesIn(folder: string): Shown {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
  return new Map(paths.filter((path) => statSync(path).isFile()).map((path) => [path, readFileSync(path, 'latin1')]))
}

/** Places where one of the secrets stands: as it is, in a URL, as base64 at any offset, in hex, or as a token of XOAUTH2. */
export function leaks(shown: Shown, secrets: readonly string[]): readonly string[] {
  const forms = secrets.flatMap((secret) => [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString('hex'),
    ...[0, 1, 2].map((offset) => base64Within(secret, offset)),
  ])
  return [...shown].flatMap(([place, text]) => (forms.some((form) => text.includes(form)) ? [place] : []))
}

/** The part of base64 that does not depend on what stands before and after the text. */
const base64Within = (text: string, offset: number): string =>
  Buffer.from(' '.repeat(offset) + text)
    .toString('base64')
    .slice(offset === 0 ? 0 : 4, -4)
