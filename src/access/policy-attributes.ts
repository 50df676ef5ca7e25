/** Attributes of a request to a policy server (Postfix SMTPD_POLICY_README). */
import type { AccessRequest } from './access-request.ts'

/** Attributes at RCPT, with the names of Postfix. Those that deferd does not know are empty. */
export function policyAttributes({ client, login, encryption, ...request }: AccessRequest): Readonly<Record<string, string>> {
  return {
    request: 'smtpd_access_policy',
    protocol_state: 'RCPT',
    protocol_name: request.protocol,
    client_address: client.address,
    client_port: '',
    client_name: client.name,
    reverse_client_name: client.name,
    helo_name: request.helo,
    sender: request.sender,
    recipient: request.recipient,
    recipient_count: '0',
    queue_id: '',
    instance: request.instance,
    size: String(request.size),
    etrn_domain: '',
    stress: '',
    sasl_method: login?.method ?? '',
    sasl_username: login?.name ?? '',
    sasl_sender: '',
    ccert_subject: '',
    ccert_issuer: '',
    ccert_fingerprint: '',
    ccert_pubkey_fingerprint: '',
    encryption_protocol: encryption?.version ?? '',
    encryption_cipher: encryption?.cipher ?? '',
    encryption_keysize: '',
    server_address: '',
    server_port: '',
  }
}
