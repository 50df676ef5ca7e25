/** Answers of the API by operation, as JSON. Written by scripts/docs.ts from test/support/lab-tour.ts; do not edit. */
export const LAB_EXAMPLES: Readonly<Record<string, string>> = {
  'GET /': '{"version":"0.9.0","worlds":0,"uptime":12.5,"limits":{"max_worlds":64,"idle":600,"lifetime":7200}}',
  'POST /worlds':
    '{"id":"w1","name":"signup","seed":1,"store":"memory","smtp":{"host":"127.0.0.1","port":40025,"tls":"none","ca":null},"remote_ports":[],"lab_defaults":{"smtpd_timeout":"100d","smtpd_error_sleep_time":"0s"},"is_up":true,"expires":"2026-01-01T00:10:00.000Z","now":"2026-01-01T00:00:00.000Z","elapsed":0,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":0,"sessions":[]}',
  'GET /worlds':
    '{"worlds":[{"id":"w1","name":"signup","seed":1,"store":"memory","smtp":{"host":"127.0.0.1","port":40025,"tls":"none","ca":null},"remote_ports":[],"lab_defaults":{"smtpd_timeout":"100d","smtpd_error_sleep_time":"0s"},"is_up":true,"expires":"2026-01-01T00:10:00.000Z","now":"2026-01-01T00:00:00.000Z","elapsed":0,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":0,"sessions":[]}]}',
  'GET /worlds/:world':
    '{"id":"w1","name":"signup","seed":1,"store":"memory","smtp":{"host":"127.0.0.1","port":40025,"tls":"none","ca":null},"remote_ports":[],"lab_defaults":{"smtpd_timeout":"100d","smtpd_error_sleep_time":"0s"},"is_up":true,"expires":"2026-01-01T00:10:00.000Z","now":"2026-01-01T00:00:00.000Z","elapsed":0,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":0,"sessions":[]}',
  'POST /worlds/:world/webhooks': '{"name":"app","secret":"…"}',
  'POST /worlds/:world/webhooks/:name/script': '{"name":"app","requests":[]}',
  'POST /worlds/:world/destinations/:domain/greylists':
    '{"rules":[{"id":1,"name":"slow.example greylists","rule":{"greylist":"5m","domain":"slow.example"},"used":0}]}',
  'POST /worlds/:world/messages': '{"accepted":[],"rejected":["ann@-.example"],"reply":"501 5.1.3 Bad recipient address syntax"}',
  'GET /worlds/:world/recipients': '{"recipients":[{"address":"ann@slow.example","accepted":1,"attempts":1,"copies":0}]}',
  'POST /worlds/:world/operations': '{"matched":1,"changed":1,"unknown":[],"in_transfer":0}',
  'POST /worlds/:world/suspend':
    '{"now":"2026-01-01T00:00:00.000Z","elapsed":0,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
  'POST /worlds/:world/resume':
    '{"now":"2026-01-01T00:00:00.000Z","elapsed":0,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
  'GET /worlds/:world/quotas/:key': '{"quotas":[{"quota":"app","limit":"1000/1h","used":1,"is_full":false}]}',
  'GET /worlds/:world/mailboxes/:address/wait':
    '{"id":1,"at":300,"from":"app@us.example","to":["ann@slow.example"],"subject":"Your code","size":337,"tls":false,"headers":[{"name":"received","value":"from [127.0.0.1] (unknown [127.0.0.1]) by deferd.example (Deferd) with ESMTP id 4dhRlh0000z1 for <ann@slow.example>; Thu, 01 Jan 2026 00:00:00 +0000 (UTC)"},{"name":"from","value":"app@us.example"}],"text":"It is 4711.\\n","html":null,"attachments":[],"signatures":[],"notice":null,"code":"4711","codes":["4711"],"links":[],"passed":300}',
  'GET /worlds/:world/mailboxes': '{"mailboxes":[{"address":"ann@slow.example","mails":1}]}',
  'GET /worlds/:world/mailboxes/:address':
    '{"address":"ann@slow.example","mails":[{"id":1,"at":300,"from":"app@us.example","to":["ann@slow.example"],"subject":"Your code","size":337,"tls":false}]}',
  'GET /worlds/:world/mails/:id':
    '{"id":1,"at":300,"from":"app@us.example","to":["ann@slow.example"],"subject":"Your code","size":337,"tls":false,"headers":[{"name":"received","value":"from [127.0.0.1] (unknown [127.0.0.1]) by deferd.example (Deferd) with ESMTP id 4dhRlh0000z1 for <ann@slow.example>; Thu, 01 Jan 2026 00:00:00 +0000 (UTC)"},{"name":"from","value":"app@us.example"}],"text":"It is 4711.\\n","html":null,"attachments":[],"signatures":[],"notice":null,"code":"4711","codes":["4711"],"links":[],"passed":0}',
  'GET /worlds/:world/recipients/:address':
    '{"address":"ann@slow.example","accepted":1,"attempts":[{"at":0,"outcome":"deferred","status":"4.7.1","stage":"rcpt","reason":"host mx.slow.example[192.0.2.1] said: 451 4.7.1 Greylisted, please try again later (in reply to RCPT TO command)","reply":"451 4.7.1 Greylisted, please try again later","host":"mx.slow.example","tls":{"level":"may","policy":"none","state":"clear","protocol":null,"cipher":null,"reason":null},"queue_id":"4dhRlh0000z1"},{"at":300,"outcome":"delivered","status":"2.0.0","stage":"end-of-data","reason":"250 2.0.0 Ok: queued as 1","reply":"250 2.0.0 Ok: queued as 1","host":"mx.slow.example","tls":{"level":"may","policy":"none","state":"clear","protocol":null,"cipher":null,"reason":null},"queue_id":"4dhRlh0000z1"}],"attempted_at":[0,300],"notices":[],"copies":[1],"story":["+0s accepted from app@us.example, 337 bytes","+0s deferred: mx.slow.example replied 451 4.7.1 Greylisted, please try again later at rcpt"]}',
  'GET /worlds/:world/events':
    '{"events":[{"id":"evt_0_1","type":"message.accepted","timestamp":"2026-01-01T00:00:00.000Z","data":{"queue_id":"4dhRlh0000z1","sender":"app@us.example","size":337,"message_id":"<4dhRlh0000z1@deferd.example>","recipients":["ann@slow.example"],"client_name":"unknown","client_address":"127.0.0.1","uid":null,"original_id":null,"sasl_username":null,"upstream_queue_id":null,"upstream_client_name":null,"upstream_client_address":null}},{"id":"evt_0_2","type":"recipient.deferred","timestamp":"2026-01-01T00:00:00.000Z","data":{"queue_id":"4dhRlh0000z1","sender":"app@us.example","recipient":"ann@slow.example","destination":"slow.example","relay":"mx.slow.example[192.0.2.1]:25","connection_use":1,"delay":0,"delays":[0,0],"status":"4.7.1","class":"policy","outcome":"deferred","stage":"rcpt","reply":"451 4.7.1 Greylisted, please try again later","reason":"host mx.slow.example[192.0.2.1] said: 451 4.7.1 Greylisted, please try again later (in reply to RCPT TO command)","login":null,"tls":"may:none","session":"8bea5ac63c8dd8eb","forced":false,"attempts":1,"next_attempt_time":1767225900,"final":false}}],"next":"0_8","kept_types":["message.accepted","message.removed"],"as_of":1767225900}',
  'GET /worlds/:world/history':
    '{"hash":"2765bd7cc50c396d9ad83bafe8c80503c0bef4ee3fc72cd11413211e1b3067d7","outcomes_hash":"ea878810cef1dc2ee5452d8f843ba78ab3a954240ad85abb73785e4794556b77","order":"sequential","events":33}',
  'POST /worlds/:world/asserts': '{"holds":true,"message":null}',
  'GET /worlds/:world/webhooks/:name/requests':
    '{"name":"app","requests":[{"at":300,"headers":{"content-type":"application/json","webhook-id":"evt_0_7","webhook-timestamp":"1767225900","webhook-signature":"v1,GiCLKN6W78q5SSw3jehefeONI06PdRYJNjBtH67aXVg="},"body":"{\\"type\\":\\"recipient.delivered\\",\\"timestamp\\":\\"2026-01-01T00:05:00.000Z\\",\\"data\\":{\\"queue_id\\":\\"4dhRlh0000z1\\",\\"sender\\":\\"app@us.example\\",\\"recipient\\":\\"ann@slow.example\\",\\"destination\\":\\"slow.example\\",\\"relay\\":\\"mx.slow.example[192.0.2.1]:25\\",\\"connection_use\\":1,\\"delay\\":300,\\"delays\\":[300,0,0,0],\\"status\\":\\"2.0.0\\",\\"class\\":null,\\"outcome\\":\\"delivered\\",\\"stage\\":\\"end-of-data\\",\\"reply\\":\\"250 2.0.0 Ok: queued as 1\\",\\"reason\\":\\"250 2.0.0 Ok: queued as 1\\",\\"login\\":null,\\"tls\\":\\"may:none\\",\\"session\\":null,\\"forced\\":false,\\"attempts\\":2,\\"next_attempt_time\\":null,\\"final\\":true}}","status":500}]}',
  'POST /worlds/:world/webhooks/:name/replay': '{"count":0}',
  'POST /worlds/:world/rules':
    '{"id":2,"name":"rule","rule":{"domain":"far.example","at":"rcpt","recipient":"ann@*","reply":"450 4.2.1 busy","first":2},"used":0}',
  'GET /worlds/:world/rules':
    '{"rules":[{"id":2,"name":"rule","rule":{"domain":"far.example","at":"rcpt","recipient":"ann@*","reply":"450 4.2.1 busy","first":2},"used":0},{"id":1,"name":"slow.example greylists","rule":{"greylist":"5m","domain":"slow.example"},"used":1}]}',
  'DELETE /worlds/:world/rules/:id':
    '{"rules":[{"id":2,"name":"rule","rule":{"domain":"far.example","at":"rcpt","recipient":"ann@*","reply":"450 4.2.1 busy","first":2},"used":0}]}',
  'DELETE /worlds/:world/rules': '{"rules":[]}',
  'POST /worlds/:world/destinations/:domain/is_down':
    '{"rules":[{"id":5,"name":"x.example is down","rule":{"connect":"refused","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/is_down_for':
    '{"rules":[{"id":6,"name":"x.example is down","rule":{"connect":"refused","from":"300000ms","until":"259500000ms","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/is_down_between':
    '{"rules":[{"id":7,"name":"x.example is down","rule":{"connect":"refused","from":"3900000ms","until":"7500000ms","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/is_unreachable':
    '{"rules":[{"id":8,"name":"x.example is unreachable","rule":{"connect":"timeout","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/rejects':
    '{"rules":[{"id":9,"name":"x.example rejects","rule":{"at":"rcpt","recipient":"*","reply":"550 5.1.1 no such user","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/defers':
    '{"rules":[{"id":11,"name":"x.example defers","rule":{"at":"rcpt","recipient":"*","reply":"451 4.3.0 try again later","from":"300000ms","until":"3900000ms","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/fails_first':
    '{"rules":[{"id":13,"name":"x.example fails first","rule":{"at":"rcpt","reply":"450 4.2.1 busy","first":2,"per":"recipient","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/mailbox_is_full':
    '{"rules":[{"id":14,"name":"x.example mailbox is full","rule":{"at":"rcpt","recipient":"bob@x.example","reply":"452 4.2.2 mailbox full","from":"300000ms","until":"86700000ms","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/throttles':
    '{"rules":[{"id":15,"name":"x.example throttles","rule":{"at":"mail","rate":"10/1m","penalty":"5m","reply":"421 4.7.0 slow","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/allows_connections':
    '{"rules":[{"id":16,"name":"x.example allows few connections","rule":{"connections_over":2,"domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/drops_after_dot':
    '{"rules":[{"id":17,"name":"x.example drops after dot","rule":{"at":"end-of-data","drop":"fin","first":2,"domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/is_slow':
    '{"rules":[{"id":18,"name":"x.example is slow","rule":{"at":"rcpt","delay":"90s","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/fails_in_dns':
    '{"rules":[{"id":19,"name":"x.example fails in DNS","rule":{"dns":"nxdomain","domain":"x.example"},"used":0}]}',
  'POST /worlds/:world/destinations/:domain/has_exchangers': '{"rules":[]}',
  'POST /worlds/:world/destinations/:domain/offers_tls': '{"rules":[]}',
  'POST /worlds/:world/destinations/:domain/has_tlsa': '{"rules":[]}',
  'POST /worlds/:world/destinations/:domain/has_sts_policy': '{"rules":[]}',
  'POST /worlds/:world/destinations/:domain/recovers': '{"rules":[]}',
  'GET /worlds/:world/clock':
    '{"now":"2026-01-01T00:05:00.000Z","elapsed":300,"speed":0,"next":{"in":5.111,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
  'POST /worlds/:world/clock/advance':
    '{"now":"2026-01-01T00:06:00.000Z","elapsed":360,"speed":0,"next":{"in":60,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
  'POST /worlds/:world/clock/step':
    '{"now":"2026-01-01T01:06:00.000Z","elapsed":360,"speed":0,"next":{"in":60,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
  'POST /worlds/:world/crash':
    '{"now":"2026-01-01T01:06:00.000Z","elapsed":360,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
  'POST /worlds/:world/restart':
    '{"now":"2026-01-01T01:06:00.000Z","elapsed":360,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
  'POST /worlds/:world/clock/settle':
    '{"now":"2026-01-01T01:06:00.000Z","elapsed":360,"speed":0,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[],"passed":0}',
  'PUT /worlds/:world/clock/speed':
    '{"now":"2026-01-01T01:06:00.000Z","elapsed":360,"speed":1,"next":{"in":5,"what":"a timer of the relay or of a server"},"accepted":1,"sessions":[]}',
}
