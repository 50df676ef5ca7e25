/** Parameters of the admin API and the page. */
import { option } from '../values/option.ts'
import * as is from '../values/values.ts'

export const ADMIN_OPTIONS = {
  admin_listen: option(is.text, '', 'Address and port of the admin API and the page; off when empty. Beyond loopback it needs the others.'),
  admin_hosts: option(is.list, '', 'Names and addresses under which browsers and programs reach admin_listen, besides those of loopback.'),
  admin_proxies: option(
    is.list,
    '',
    'Networks of the proxies whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-User fields are believed.',
  ),
  admin_tls_cert_file: option(is.text, '', 'Certificate of admin_listen with its chain (PEM); without one the port has no TLS.'),
  admin_tls_key_file: option(is.text, '$admin_tls_cert_file', 'Private key of the certificate of admin_listen (PEM).'),
} as const
