/**
 * The authorization server of `deferd sink --oauth`: its files in the folder of the sink, which later sinks use again, and the configuration
 * to paste. Secrets are in the files only.
 */
import { generateKeyPairSync } from 'node:crypto'
import type { AuthorityOptions } from '../../../testkit/options/authority-options.ts'
import type { AuthorityProvider } from '../../../testkit/oauth/authority-settings.ts'
import { placeText } from '../../../config/values/endpoints.ts'
import type { RemotePort } from '../../../testkit/scripted/remote-ports.ts'
import type { SinkAuthority, SinkPlaces } from '../../../testkit/scripted/sink.ts'
import { SinkFiles, type SinkFilesDeps } from './sink-files.ts'

interface SinkOauthOptions {
  readonly provider: AuthorityProvider
  readonly at: SinkAuthority['at']
  /** Certificate (PEM) of the client, in place of its secret. */
  readonly certificate: string | undefined
}

interface SinkOauthDeps extends SinkFilesDeps {
  readonly ports: readonly RemotePort[]
}

export interface SinkOauth {
  readonly authority: SinkAuthority
  /** Addresses of the server, and the configuration to paste. */
  introduction(places: SinkPlaces): string
}

const TENANT = 'contoso.example'
const MAILBOX = `app@${TENANT}`
const CLIENT = 'deferd-sink'
/** Client id for the login of a person, without a client secret. */
const PUBLIC_CLIENT = 'deferd-sink-device'
const ACCOUNT = 'relay@deferd-sink.iam.gserviceaccount.com'
const SCOPES: Readonly<Partial<Record<AuthorityProvider, string>>> = { other: 'smtp' }

/** Prepares the server and writes its files. `folder` is private to the user. */
export function prepareSinkOauth(
  { provider, at, certificate }: SinkOauthOptions,
  folder: string,
  { ports, ...deps }: SinkOauthDeps,
): SinkOauth {
  const files = new SinkFiles(folder, deps)
  const seed = files.derived('authority server')
  const secret = files.derived('client secret').toString('base64url')
  files.write('client-secret', `${secret}\n`)
  const identity = files.identity(ports, at.address)
  const account = provider === 'google' ? serviceAccount(files) : {}
  const clients = { [CLIENT]: certificate === undefined ? { secret } : { certificate }, [PUBLIC_CLIENT]: {}, ...account }
  const options: AuthorityOptions = {
    provider,
    host: 'localhost',
    clients,
    rotates: true,
    ...(provider === 'microsoft' ? { tenant: TENANT } : {}),
  }
  return {
    authority: { at, options, seed, identity },
    introduction: (places) => introduction(places, { provider, files, hasCertificate: certificate !== undefined }),
  }
}

/** A service account with the file that the Google Cloud console would give. */
function serviceAccount(files: SinkFiles): AuthorityOptions['clients'] {
  const text = files.keep('service-account.json', () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    })
    const file = { type: 'service_account', private_key_id: 'sink', private_key: privateKey, client_email: ACCOUNT, public_key: publicKey }
    return `${JSON.stringify(file, null, 2)}\n`
  })
  const { public_key: publicKey } = JSON.parse(text) as { readonly public_key: string }
  return { [ACCOUNT]: { publicKey } }
}

interface Shown {
  readonly provider: AuthorityProvider
  readonly files: SinkFiles
  readonly hasCertificate: boolean
}

/** Addresses, and a configuration to paste. */
function introduction({ ports: [hop], authority }: SinkPlaces, { provider, files, hasCertificate }: Shown): string {
  if (hop === undefined || authority === null) return ''
  const { tokenUrl, deviceUrl } = authority
  const place = placeText(hop)
    .replace(/^(.*):(\d+)$/, '[$1]:$2')
    .replace('[[', '[')
    .replace(']]', ']')
  files.write('sasl_passwd', `${place} ${MAILBOX}:\n`)
  const scope = SCOPES[provider]
  const login =
    provider === 'google'
      ? ['grant = "service_account"', `service_account_file = "${files.path('service-account.json')}"`]
      : [
          'grant = "client_credentials"',
          `client_id = "${CLIENT}"`,
          hasCertificate
            ? 'client_certificate_file = "FILE with the certificate and its key"'
            : `client_secret_file = "${files.path('client-secret')}"`,
        ]
  return [
    `the authorization server listens on ${tokenUrl}`,
    `Configuration to paste; mail from ${MAILBOX}:`,
    '',
    `relayhost = "${place}"`,
    'smtp_tls_security_level = "secure"',
    `smtp_tls_CAfile = "${files.path('ca.pem')}"`,
    'smtp_sasl_oauth = "sink"',
    `smtp_sasl_password_maps = "${files.path('sasl_passwd')}"`,
    '',
    '[oauth.sink]',
    `provider = "${provider}"`,
    ...login,
    ...(provider === 'microsoft' ? [`tenant = "${TENANT}"`] : []),
    ...(scope === undefined ? [] : [`scope = "${scope}"`]),
    `token_url = "${tokenUrl}"`,
    `ca_file = "${files.path('ca.pem')}"`,
    '',
    ...(provider === 'google' ? [] : personLogin(deviceUrl)),
  ]
    .map((line) => `${line}\n`)
    .join('')
}

/** Ways in which a person logs in. Google has no device code for mail. */
const personLogin = (deviceUrl: string): readonly string[] => [
  `For the login of a person: grant = "refresh_token", client_id = "${PUBLIC_CLIENT}", device_url = "${deviceUrl}",`,
  `refresh_token_file = "FILE", no secret; then deferd oauth login sink. The page of the server approves the code.`,
  '',
]
