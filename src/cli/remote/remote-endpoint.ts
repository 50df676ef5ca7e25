/** The daemon of another machine: its URL, the token, and the sentences for what goes wrong on the way. */
import { readFileSync } from 'node:fs'
import { exitCodeOf, SOFTWARE, UNKNOWN_PATH } from '../../http/command-protocol.ts'
import { maskControls } from '../../mail/smtp-reply.ts'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { VERSION } from '../../system/version.ts'
import type { Endpoint } from '../queue-client/api-connection.ts'
import { RequestRefused } from '../queue-client/api-connection.ts'
import { CommandError, EX } from '../shell/exit.ts'

export interface RemoteOptions {
  readonly host: string
  readonly tokenFile: string | null
}

const LOOPBACK = /^(?:localhost|127\.[\d.]+|\[::1\])$/

function parsedUrl(host: string): URL {
  const url = URL.canParse(host) ? new URL(host) : null
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url === null || !isWeb || url.username !== '' || url.search !== '' || url.hash !== '')
    throw new CommandError(EX.usage, `--host ${maskControls(host)}: expected a URL such as https://relay.example.com:2580`)
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    throw new CommandError(EX.usage, `--host ${maskControls(host)}: the token would cross the network in clear: use https://`)
  return url
}

function tokenIn(file: string | null): string {
  if (file === null) throw new CommandError(EX.usage, '--host needs --token-file FILE, with a token of deferd token add')
  let text: string
  try {
    text = readFileSync(file, 'utf8').trim()
  } catch (cause) {
    throw new CommandError(EX.config, `cannot read the token: ${errorMessage(cause)}`, { cause })
  }
  if (/^[\x21-\x7e]+$/.test(text)) return text
  throw new CommandError(EX.config, `${maskControls(file)} has no token: write the line that deferd token add prints`)
}

/** Codes of failed look-ups and connections. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
])

/** Throws CommandError for a malformed URL (64), and for a token that cannot be read (78). */
export function remoteEndpoint({ host, tokenFile }: RemoteOptions): Endpoint {
  const url = parsedUrl(host)
  const token = tokenIn(tokenFile)
  const name = url.origin
  return {
    at: { hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: url.port },
    isEncrypted: url.protocol === 'https:',
    prefix: url.pathname.replace(/\/+$/, ''),
    token: () => token,
    refusal: ({ detail, type = '', exit_code: exitCode }, { statusCode: status = 0 }) => {
      const slug = type.replace(/^.*\//, '')
      if (detail === undefined)
        return new CommandError(EX.unavailable, `${name} answers ${status}, and not as the admin API of deferd: correct --host`)
      if (status === 401) return new CommandError(EX.notPermitted, `${name} does not accept the token: ${maskControls(detail)}`)
      if (slug === UNKNOWN_PATH)
        return new CommandError(
          EX.unavailable,
          `the daemon at ${name} does not know this command of deferd ${VERSION}: ${maskControls(detail)}`,
        )
      const code = exitCode ?? exitCodeOf({ status, slug })
      return new RequestRefused(code === SOFTWARE && status < 500 ? EX.data : code, maskControls(detail), type)
    },
    failure: (cause) => failureOf(cause, name),
  }
}

function failureOf(cause: Error, name: string): Error {
  const code = errorCode(cause)
  if (code === 'ECONNRESET' || cause instanceof CommandError) return cause
  if (UNREACHABLE.has(code)) return new CommandError(EX.unavailable, `cannot reach ${name}: ${errorMessage(cause)}`, { cause })
  const remedy = 'an authority of your own is named by NODE_EXTRA_CA_CERTS'
  return new CommandError(EX.unavailable, `no TLS connection to ${name}: ${errorMessage(cause).split('\n', 1)[0]}; ${remedy}`, { cause })
}
