#!/bin/sh
# An ACP agent that starts in a millisecond and says just enough, for tests that need very many of them.
# $1 is how it behaves: `obeys` (echoes "done" to every prompt), `leaves` (a child in a session of its own
# outlives it), `exits`, `refuses` (the handshake), `silent` (never answers), `deaf` (ends no turn, obeys no cancel),
# `waits` (ends a turn only when it is cancelled), `counts` (five numbers a second, until the file $2 is there). It keeps
# no conversation, and loads any.
case $1 in
    exits) echo "no key was found" >&2; exit 3 ;;
    silent) exec cat >/dev/null ;;
    leaves) setsid sleep 600 >/dev/null 2>&1 & ;;
esac

say() { # session, text
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s' "$1" \
        '{"sessionUpdate":"agent_message_chunk","messageId":"m'"$id"'","content":{"type":"text","text":'
    printf '"%s"}}}}\n' "$2"
}

count() { # session, the file that ends it
    number=0
    until [ -e "$2" ]; do
        number=$((number + 1))
        say "$1" "$number "
        sleep 0.2
    done
    say "$1" end
}

answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }

turn=
while IFS= read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    case $line in
        *'"method":"initialize"'*)
            if [ "$1" = refuses ]; then
                printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"not today"}}\n' "$id"
            else
                answer "$id" '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}'
            fi ;;
        *'"method":"session/new"'*) answer "$id" "{\"sessionId\":\"tiny-$$\"}" ;;
        *'"method":"session/load"'*) answer "$id" '{}' ;;
        *'"method":"session/prompt"'*)
            session=${line#*'"sessionId":"'}
            session=${session%%'"'*}
            case $1 in
                counts) count "$session" "$2" ;;
                *) say "$session" done ;;
            esac
            case $1 in
                deaf | waits) turn=$id ;;
                *) answer "$id" '{"stopReason":"end_turn"}' ;;
            esac ;;
        *'"method":"session/cancel"'*)
            if [ "$1" = waits ] && [ -n "$turn" ]; then
                answer "$turn" '{"stopReason":"cancelled"}'
                turn=
            fi ;;
    esac
done
