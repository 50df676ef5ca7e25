/** Warnings of a start about `[oauth.NAME]` tables. */
import type { Config } from '../config/options.ts'
import { unusedLogins, unusedTables } from '../delivery/tls/oauth-uses.ts'
import type { OauthClients } from '../oauth/access-tokens.ts'
import { loginAdvice } from '../oauth/advice.ts'

/** `passwords` is the text of smtp_sasl_password_maps. */
export const oauthWarnings = (clients: OauthClients, config: Config, passwords: string): readonly string[] => [
  ...[...clients.values()]
    .filter(({ table, refreshToken }) => table.refreshTokenFile !== '' && refreshToken === null)
    .map(({ table }) => `oauth.${table.name}: ${table.refreshTokenFile} does not exist: ${loginAdvice(table)}`),
  ...unusedTables(config, passwords).map(
    (name) => `oauth.${name} is used by no login: write USER:oauth=${name} as a login to smtp_sasl_password_maps, or remove the table`,
  ),
  ...unusedLogins(config, passwords).map(
    (key) =>
      `the login of ${key} in smtp_sasl_password_maps is for no next hop of the configuration: correct the next hop, or remove the line`,
  ),
]
