import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { eventRequest, type RequestTerms, type SentEvent } from '../../src/subscriptions/event-request.ts'

const event = (seq: number): SentEvent => ({
  id: `evt_k3_${seq}`,
  type: 'notice.dropped',
  timestamp: '2026-01-01T00:00:00.000Z',
  data: { queue_id: 'Q1', sender: `ü${seq}@there.example`, text: 'no room' },
})

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const OTHER = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

const TERMS: RequestTerms = { format: 'deferd', isBatch: false, secrets: [SECRET], source: 'relay.example', now: Date.now() }

describe('a request', () => {
  test('is verified by the library of Standard Webhooks', () => {
    const { headers, body } = eventRequest([event(7)], TERMS)
    expect(new Webhook(SECRET).verify(body, headers)).toEqual({
      type: 'notice.dropped',
      timestamp: '2026-01-01T00:00:00.000Z',
      data: { queue_id: 'Q1', sender: 'ü7@there.example', text: 'no room' },
    })
    expect(headers['webhook-id']).toBe('evt_k3_7')
  })

  test('is signed by the new and the old secret while both are valid', () => {
    const { headers, body } = eventRequest([event(7)], { ...TERMS, secrets: [SECRET, OTHER] })
    for (const secret of [SECRET, OTHER]) expect(new Webhook(secret).verify(body, headers)).toBeDefined()
  })

  test('with one changed byte is refused', () => {
    const { headers, body } = eventRequest([event(7)], TERMS)
    expect(() => new Webhook(SECRET).verify(body.replace('Q1', 'Q2'), headers)).toThrow(/signature/i)
    expect(() => new Webhook(OTHER).verify(body, headers)).toThrow(/signature/i)
  })

  test('without a secret has no signature', () => {
    expect(eventRequest([event(7)], { ...TERMS, secrets: [] }).headers).not.toHaveProperty('webhook-signature')
  })

  test('with several events is an array, with an id of its first and last event', () => {
    const { headers, body } = eventRequest([event(7), event(8), event(9)], { ...TERMS, isBatch: true })
    expect(headers['webhook-id']).toBe('evt_k3_7-9')
    expect(JSON.parse(body)).toEqual([event(7), event(8), event(9)])
    expect(new Webhook(SECRET).verify(body, headers)).toHaveLength(3)
  })

  test('in the format of CloudEvents has its members', () => {
    const { headers, body } = eventRequest([event(7)], { ...TERMS, format: 'cloudevents' })
    expect(headers['content-type']).toBe('application/cloudevents+json')
    expect(JSON.parse(body)).toEqual({
      specversion: '1.0',
      id: 'evt_k3_7',
      source: 'smtp://relay.example',
      type: 'deferd.notice.dropped',
      time: '2026-01-01T00:00:00.000Z',
      datacontenttype: 'application/json',
      data: event(7).data,
    })
  })
})
