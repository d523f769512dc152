// Package keytmpl makes keys from templates such as "order:{orderId}", and durations
// from settings such as "${LOCK_WAIT:100ms}".
//
// # Templates
//
// A template is text with placeholders in braces. Text outside of them is kept byte for
// byte; "{{" and "}}" stand for single braces. A placeholder's name is one or several
// parts joined by dots: letters, digits, "_" and "-", where the first part begins with a
// letter or "_".
//
// Values are escaped, so that different values can never make one key: letters, digits
// and combining marks of any script and the characters "-", "_", "." and "~" stay, every
// other byte becomes "%" and two hexadecimal digits. So "{a}:{b}" makes "x%3Ay:z" of
// "x:y" and "z", and "x:y%3Az" of "x" and "y:z". For this to hold the text between two
// placeholders must have a character that is escaped in values, such as ":" or "/";
// [Parse] refuses a template without one.
//
// "{x|raw}" puts a value in as it is, for keys shared with other systems. Which values
// may then make one key is for the caller to know.
//
// A value that is missing, empty or blank, or printed from a nil as "<nil>", is an error
// and never a shared key with a hole in it; so is one that is not UTF-8 or contains a NUL
// byte.
package keytmpl
