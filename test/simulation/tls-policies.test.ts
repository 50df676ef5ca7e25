/** Random troubles of domains with TLS policies: no mail in clear or to another host, and none stuck when the troubles are over. */
import { expect, test } from 'vitest'
import { runTlsPolicies } from './tls-policies.ts'

const SEEDS = Array.from({ length: Number(process.env['TLS_SEEDS'] ?? 6) }, (_, n) => n + 1)

test.each(SEEDS.flatMap((seed) => (['sts', 'dane'] as const).map((kind) => [kind, seed] as const)))(
  'a domain with %s, seed %i',
  { timeout: 120_000 },
  async (kind, seed) => {
    expect(await runTlsPolicies(kind, seed)).toEqual([])
  },
)
