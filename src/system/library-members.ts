/**
 * Checks that a library has the undocumented members that an adapter overrides or reads. An update that renames a member then
 * fails at the start of the relay, not during a session.
 */

/** EX_SOFTWARE of sysexits(3). */
const SOFTWARE = 70

export class UnfitLibrary extends Error {
  override readonly name = 'UnfitLibrary'
  readonly exitCode = SOFTWARE
}

/** Throws UnfitLibrary unless the instance has all members. `library` is the name of the npm package. */
export function requireMembers<T extends object>(library: string, instance: T, members: readonly (keyof T & string)[]): void {
  const missing = members.filter((name) => !(name in instance))
  if (missing.length === 0) return
  throw new UnfitLibrary(
    `the installed ${library} does not fit: it has no ${missing.join(', ')}; install the version that package.json of deferd names`,
  )
}
