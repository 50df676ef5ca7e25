/** The architectures of the packages, all built on either one. */

/** Node's names. */
export const ARCHITECTURES = ['x64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** Names of Debian, and of the Go language, which the OCI specification uses. */
export const DEBIAN: Readonly<Record<Architecture, string>> = { x64: 'amd64', arm64: 'arm64' }

/** Prefix of the binutils. */
export const GNU: Readonly<Record<Architecture, string>> = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' }

/** The architecture of this process. Throws for one without packages. */
export function ownArchitecture(): Architecture {
  const own = ARCHITECTURES.find((known) => known === process.arch)
  if (own === undefined) throw new Error(`there is no package for ${process.arch}: name one of ${ARCHITECTURES.join(' and ')}`)
  return own
}

/** Architectures by Debian's names, in the order of ARCHITECTURES. Throws for an unknown one. */
export function fromDebian(names: readonly string[]): readonly Architecture[] {
  const strange = names.find((name) => !Object.values(DEBIAN).includes(name))
  if (strange !== undefined) throw new Error(`--architecture ${strange}: expected ${Object.values(DEBIAN).join(' or ')}`)
  return ARCHITECTURES.filter((architecture) => names.includes(DEBIAN[architecture]))
}
