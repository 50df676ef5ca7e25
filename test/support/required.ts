/**
 * Tests that need a program that may be absent: a browser, PostgreSQL, Postfix, opendkim with dkimpy, the tools of Debian
 * packages, of the clients of the lab and of the API, or an emulator of another processor. Without it they are skipped with the reason in their name. DEFERD_TEST_REQUIRE is a list of needs that must be met
 * (`browser,postgres,interop,packages,clients,emulation`): such a test then fails.
 */
export type Need = 'browser' | 'postgres' | 'interop' | 'packages' | 'clients' | 'emulation'

const NEEDS: readonly Need[] = ['browser', 'postgres', 'interop', 'packages', 'clients', 'emulation']

/** The needs in DEFERD_TEST_REQUIRE. Throws when a name is unknown. */
export function requiredNeeds(text = process.env['DEFERD_TEST_REQUIRE'] ?? ''): readonly Need[] {
  const names = text.split(/[,\s]+/).filter((name) => name !== '')
  return names.map((name) => {
    const need = NEEDS.find((known) => known === name)
    if (need === undefined) throw new Error(`DEFERD_TEST_REQUIRE: ${name} is unknown; known are ${NEEDS.join(', ')}`)
    return need
  })
}

/**
 * Decides on a group of tests. `missing` is the reason why they cannot run; null when they can. Returns the reason to skip them;
 * null when they run. Throws when the need is required.
 */
export function reasonToSkip(need: Need, missing: string | null): string | null {
  if (missing !== null && requiredNeeds().includes(need)) throw new Error(`DEFERD_TEST_REQUIRE has ${need}, but ${missing}`)
  return missing
}
