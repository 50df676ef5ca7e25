/** Sentences about a configuration of DKIM that works, but not as its operator may expect. Pure. */
import { settingsUnder } from '../config/destination-settings.ts'
import type { Config } from '../config/options.ts'
import type { DkimKeys } from './keys.ts'
import { keysFor } from './signer.ts'

/** Shorter RSA keys are refused by some receivers; longer ones need a TXT record of more than 512 octets. */
const ADVISED = { least: 2048, most: 4096 }

/** Sentences about keys that work but should be replaced. */
export const keyWarnings = (keys: DkimKeys): readonly string[] =>
  [...keys.values()].flatMap((domain) =>
    domain.keys.flatMap(({ algorithm, bits, path }) => {
      if (algorithm !== 'rsa-sha256' || (bits >= ADVISED.least && bits <= ADVISED.most)) return []
      const reason = bits < ADVISED.least ? 'some receivers ignore it' : 'its TXT record exceeds 512 octets'
      return [`${path} has an RSA key of ${bits} bits, ${reason}: use ${ADVISED.least}`]
    }),
  )

/** Sentences about mail that gets no signature, or one that becomes invalid. */
export function signingWarnings(config: Config, keys: DkimKeys): readonly string[] {
  if (keys.size === 0) return []
  const idle = [...keys].filter(([, { keys: own }]) => own.every(({ staged }) => staged)).map(([heading]) => heading)
  const others = [...config.destination.keys()].filter((heading) => {
    const { dkim_sign, smtp_line_length_limit } = settingsUnder(config, heading)
    return dkim_sign && smtp_line_length_limit !== config.smtp_line_length_limit
  })
  return [
    ...idle.map((heading) => `dkim."${heading}" signs nothing, because all its keys are marked with "?"`),
    ...(keysFor(keys, config.myorigin.toLowerCase()) !== undefined
      ? []
      : [`notices are not signed: their From has the domain ${config.myorigin} (myorigin), for which there is no [dkim] table`]),
    ...others.map(
      (heading) =>
        `destination."${heading}" has an smtp_line_length_limit of its own: signatures of mail with long lines are invalid there; use the one of the relay`,
    ),
  ]
}
