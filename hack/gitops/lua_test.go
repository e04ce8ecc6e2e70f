package gitops

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// run runs a script as Argo CD does: with the object as obj, and of the libraries those
// for the language itself and for tables.
func run(t *testing.T, script string, obj *unstructured.Unstructured) map[string]any {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		require.NoError(t, state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	// Values arrive as JSON gives them, numbers as floats.
	text, err := obj.MarshalJSON()
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(text, &value))
	state.SetGlobal("obj", toLua(state, value))
	require.NoError(t, state.DoString(script))
	out, ok := fromLua(state.Get(-1)).(map[string]any)
	require.True(t, ok, "the script returns a table")
	return out
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.NewTable()
		for _, element := range value {
			table.Append(toLua(state, element))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, element := range value {
			table.RawSetString(key, toLua(state, element))
		}
		return table
	default:
		return lua.LNil
	}
}

// fromLua takes a table with a first element for a list. An empty one becomes nil: Lua
// does not tell an empty list from an empty map.
func fromLua(value lua.LValue) any {
	switch value := value.(type) {
	case lua.LBool:
		return bool(value)
	case lua.LNumber:
		return float64(value)
	case lua.LString:
		return string(value)
	case *lua.LTable:
		if value.Len() > 0 {
			var list []any
			value.ForEach(func(_, element lua.LValue) { list = append(list, fromLua(element)) })
			return list
		}
		var out map[string]any
		value.ForEach(func(key, element lua.LValue) {
			if out == nil {
				out = map[string]any{}
			}
			out[key.String()] = fromLua(element)
		})
		if out == nil {
			return nil
		}
		return out
	default:
		return nil
	}
}
