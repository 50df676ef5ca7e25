/** `deferd dkim sign` and `deferd dkim verify`: one message from standard input. */
import type { Command } from 'commander'
import { parseSignedFields } from '../../config/values/signed-fields.ts'
import { HeaderChoice } from '../../dkim/header-choice.ts'
import { loadDkimKeys } from '../../dkim/keys.ts'
import { MessageDigest, splitContent } from '../../dkim/message-digest.ts'
import { Signer, timeOfSignature } from '../../dkim/signer.ts'
import { readSignatures, signatureProblem } from '../../dkim/verifier.ts'
import { ContentEncoding } from '../../mail/content-encoding.ts'
import { signInThreadPool } from '../../system/signing.ts'
import { jsonLine, maskControls } from '../../presentation/text.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

/** The message with CRLF line ends and lines up to the limit, as it is sent. */
async function readMessage(shell: Shell, lineLimit: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of shell.stdin) chunks.push(chunk)
  const encoding = new ContentEncoding(lineLimit, 'BDAT')
  return Buffer.concat([encoding.encode(Buffer.concat(chunks)), Buffer.from(encoding.lineEnd())])
}

const UNSIGNED = {
  from: 'its header has not exactly one From address',
  'no-table': 'there is no [dkim] table for the domain of its From address',
}

async function sign(shell: Shell, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  const signer = new Signer(loadDkimKeys(config), signInThreadPool, new HeaderChoice(parseSignedFields(config)))
  const content = await readMessage(shell, config.smtp_line_length_limit)
  const digest = new MessageDigest(0)
  const { header, body } = splitContent(content)
  digest.header(header)
  digest.body(body)
  const fields = digest.fields()
  const signatory = signer.signatory(fields)
  if ('why' in signatory) throw new CommandError(EX.data, `the message is not signed: ${UNSIGNED[signatory.why]}`)
  const signedAt = timeOfSignature(shell.clock.now())
  const signatures = await signer.sign({ fields, bodyHash: digest.bodyHash(), signedAt }, signatory.domain)
  await shell.stdout.write(Buffer.concat([Buffer.from(signatures), content]))
}

interface Verdict {
  readonly domain: string
  readonly selector: string
  readonly algorithm: string
  readonly verdict: 'pass' | 'fail' | 'unknown'
  readonly why: string | null
}

async function* verdicts(shell: Shell, command: Command): AsyncGenerator<Verdict> {
  const { config } = await configOf(shell, command)
  const { SystemNet } = await import('../../system/system-net.ts')
  const net = new SystemNet({ dnsServers: config.dns_servers })
  const content = readSignatures(await readMessage(shell, 0))
  for (const signature of content.signatures) {
    const { domain, selector, algorithm, record } = signature
    const found = await net.lookupTxt(record)
    if (found.kind === 'failed') {
      yield { domain, selector, algorithm, verdict: 'unknown', why: `the look-up of ${record} failed: ${found.reason}` }
      continue
    }
    const records = found.kind === 'found' ? found.records : []
    const why = signatureProblem(content, signature, records, timeOfSignature(shell.clock.now()))
    yield { domain, selector, algorithm, verdict: why === null ? 'pass' : 'fail', why }
  }
}

const lineOf = ({ verdict, domain, selector, algorithm, why }: Verdict): string =>
  `${verdict.padEnd(9)}d=${maskControls(domain)} s=${maskControls(selector)} a=${maskControls(algorithm)}${why === null ? '' : `: ${maskControls(why)}`}\n`

const VERIFY_HELP = `
Exit code 0 when all signatures are valid, 65 when one is not or there is none, 75 when a look-up failed for now.`

/** `end` ends the command with an exit code. */
export function addMessageCommands(parent: Command, shell: Shell, end: (code: number) => void): void {
  subcommand(parent, 'sign', 'sign the message on standard input as the daemon would')
    .addHelpText('after', '\nPrints the message as it is sent. Exit code 65 when the message gets no signature.')
    .action((_options: unknown, command: Command) => sign(shell, command))
  subcommand(parent, 'verify', 'verify the signatures of the message on standard input')
    .option('--json', 'one JSON object per signature')
    .addHelpText('after', VERIFY_HELP)
    .action(async ({ json }: { readonly json?: true }, command: Command) => {
      const found = new Set<Verdict['verdict']>()
      for await (const verdict of verdicts(shell, command)) {
        found.add(verdict.verdict)
        await shell.stdout.write(json === true ? jsonLine(verdict) : lineOf(verdict))
      }
      if (found.size === 0) throw new CommandError(EX.data, 'the message has no DKIM-Signature field')
      end(found.has('fail') ? EX.data : found.has('unknown') ? EX.temporary : 0)
    })
}
